"""Safeguards read impact metrics of backend tokens; those of frontend tokens only if they say so."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("releases", "0012_who_still_approves"),
        ("projects", "0034_origin_of_impact_metrics"),
    ]

    operations = [
        migrations.AddField(
            "safeguard", "frontend", models.BooleanField(db_default=False, default=False)
        ),
    ]
