from django.db import migrations, models


def remember_present_keys(apps, schema_editor):
    """Tokens made by earlier versions from the environment; what was revoked before cannot be known."""
    made = apps.get_model("groups", "ApiToken").objects.filter(name__startswith="from INIT_")
    key = apps.get_model("groups", "StartUpKey")
    key.objects.bulk_create(key(secret_hash=secret_hash) for secret_hash in made.values_list("secret_hash", flat=True))


class Migration(migrations.Migration):

    dependencies = [
        ("groups", "0004_role_usage"),
    ]

    operations = [
        migrations.CreateModel(
            name="StartUpKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("secret_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.RunPython(remember_present_keys, migrations.RunPython.noop),
    ]
