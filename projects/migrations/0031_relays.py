import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0030_code_references'),
    ]

    operations = [
        migrations.CreateModel(
            name='Relay',
            fields=[
                ('identifier', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('region', models.CharField(blank=True, max_length=100)),
                ('version', models.CharField(blank=True, max_length=50)),
                ('started_at', models.DateTimeField()),
                ('heard_at', models.DateTimeField(db_index=True)),
                ('interval', models.FloatField()),
                ('flags_age', models.FloatField()),
                ('tokens', models.PositiveIntegerField()),
                ('clients', models.PositiveIntegerField()),
                ('streams', models.PositiveIntegerField()),
                ('batches_waiting', models.PositiveIntegerField()),
                ('faults', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=300), default=list, size=None)),
            ],
            options={
                'ordering': ['region', 'identifier'],
            },
        ),
    ]
