from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("importer", "0011_users_of_a_move")]

    operations = [
        migrations.AddField(
            model_name="installationmove",
            name="left_out",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
