from django.db import migrations

from projects.revision import TOUCH_SQL, UNTOUCH_SQL


class Migration(migrations.Migration):
    dependencies = [("projects", "0001_initial")]
    operations = [migrations.RunSQL(TOUCH_SQL, UNTOUCH_SQL)]
