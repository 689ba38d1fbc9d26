"""Says of rules of signals that somebody else has replaced the token of their source."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("integrations", "0007_ended_names")]

    operations = [
        migrations.AddField(
            "signalrule", "suspended_at", models.DateTimeField(blank=True, editable=False, null=True)
        ),
        migrations.AddField(
            "signalrule",
            "suspended_by",
            models.TextField(blank=True, db_default="", default="", editable=False),
        ),
    ]
