"""Says with which token a relay's report came, so that no token can fill the list of relays."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projects", "0034_origin_of_impact_metrics")]

    operations = [migrations.AddField("relay", "token_id", models.BigIntegerField(db_default=0, default=0))]
