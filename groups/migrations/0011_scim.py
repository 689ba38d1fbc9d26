
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0010_invite_links'),
    ]

    operations = [
        migrations.AddField(
            model_name='group',
            name='external_id',
            field=models.CharField(blank=True, help_text="The identity provider's, by SCIM.", max_length=255, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='external_id',
            field=models.CharField(blank=True, db_index=True, help_text="The identity provider's, by SCIM.", max_length=255, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='scim_name',
            field=models.JSONField(blank=True, editable=False, help_text='Parts of the name, as the identity provider has them.', null=True),
        ),
        migrations.CreateModel(
            name='ScimSettings',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('is_enabled', models.BooleanField(default=False, verbose_name='enabled')),
                ('token_hash', models.CharField(editable=False, max_length=64, null=True)),
                ('token_created_at', models.DateTimeField(editable=False, null=True)),
                ('seen_at', models.DateTimeField(editable=False, null=True, verbose_name='last used')),
            ],
            options={
                'verbose_name_plural': 'SCIM settings',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='scim_settings_one_row')],
            },
        ),
    ]
