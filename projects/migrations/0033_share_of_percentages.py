"""Counts percentages above 100 as SDKs do: a strategy with a group keeps its flag off."""

from django.db import migrations, models
from django.db.models.expressions import RawSQL

SHARE = """CASE WHEN name = 'default' THEN 100
     WHEN name = 'flexibleRollout' THEN CASE WHEN (parameters ->> 'rollout') ~ '^[+]?[0-9]{1,18}$' THEN CASE WHEN (parameters ->> 'rollout')::numeric > 100 THEN 0 ELSE (parameters ->> 'rollout')::numeric END ELSE 0 END
     WHEN name IN ('gradualRolloutUserId', 'gradualRolloutSessionId', 'gradualRolloutRandom') THEN CASE WHEN (parameters ->> 'percentage') ~ '^[+]?[0-9]{1,18}$' THEN CASE WHEN (parameters ->> 'percentage')::numeric > 100 THEN CASE WHEN name = 'gradualRolloutRandom' THEN 100 ELSE 0 END ELSE (parameters ->> 'percentage')::numeric END ELSE 0 END END"""


class Migration(migrations.Migration):
    dependencies = [("projects", "0032_link_templates")]

    # The expression of a generated column can only be replaced with its column.
    operations = [
        migrations.RemoveIndex("strategy", "strategy_share"),
        migrations.RemoveField("strategy", "share"),
        migrations.AddField(
            "strategy",
            "share",
            models.GeneratedField(
                db_persist=True, expression=RawSQL(SHARE, []), output_field=models.SmallIntegerField(null=True)
            ),
        ),
        migrations.AddIndex(
            "strategy",
            models.Index(fields=["environment", "flag", "disabled", "share"], name="strategy_share"),
        ),
    ]
