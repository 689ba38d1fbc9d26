from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0026_flag_owner'),
    ]

    operations = [
        migrations.AddField(
            model_name='projectenvironment',
            name='approval_rules',
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='projectenvironment',
            name='approver_groups',
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
