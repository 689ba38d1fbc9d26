"""Says who got the token of a source of signals."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("integrations", "0008_suspended_rules"),
    ]

    operations = [
        migrations.AddField(
            "signalsource",
            "token_by",
            models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            "signalsource",
            "token_by_name",
            models.TextField(blank=True, db_default="", default="", editable=False),
        ),
    ]
