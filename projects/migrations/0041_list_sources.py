import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("projects", "0040_payload_schemas"),
    ]

    operations = [
        migrations.CreateModel(
            name="ListSource",
            fields=[
                (
                    "segment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="list_source",
                        serialize=False,
                        to="projects.segment",
                    ),
                ),
                ("encrypted_url", models.TextField()),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("lines", "One value per line"),
                            ("csv", "A column of a CSV file"),
                            ("json", "A JSON list"),
                        ],
                        default="lines",
                        max_length=10,
                    ),
                ),
                ("column", models.CharField(blank=True, max_length=255)),
                ("minutes", models.PositiveIntegerField(default=60)),
                ("set_by_name", models.CharField(max_length=255)),
                ("set_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("result", models.TextField(blank=True)),
                ("problem", models.TextField(blank=True)),
                ("etag", models.CharField(blank=True, max_length=500)),
                ("fetched_hash", models.CharField(blank=True, max_length=32)),
                (
                    "set_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
