from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("importer", "0010_converted_from")]

    operations = [
        migrations.AddField(
            model_name="installationmove",
            name="file_name",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
    ]
