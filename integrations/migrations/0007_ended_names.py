from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("integrations", "0006_claimed_until")]

    operations = [
        migrations.AddField(
            "integration",
            "ended",
            models.JSONField(blank=True, db_default={}, default=dict, editable=False),
        ),
    ]
