from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("importer", "0004_flag_reports")]

    operations = [migrations.RenameField("importrun", "left_out", "excluded")]
