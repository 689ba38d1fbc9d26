import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce


class Migration(migrations.Migration):

    replaces = [
        ('integrations', '0001_initial'),
        ('integrations', '0002_filters_and_left_out'),
        ('integrations', '0003_written_log'),
        ('integrations', '0004_signals'),
        ('integrations', '0005_pause_plan_and_calendar'),
        ('integrations', '0006_claimed_until'),
        ('integrations', '0007_ended_names'),
        ('integrations', '0008_suspended_rules'),
        ('integrations', '0009_holders_of_tokens'),
        ('integrations', '0010_trace_tokens'),
    ]

    initial = True

    dependencies = [
        ('audit', '0001_squashed_0007_transaction_before_events'),
        ('groups', '0002_squashed_0014_name_groups_that_differ_by_case'),
        ('groups', '__first__'),
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.CreateModel(
                    name='Integration',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('provider', models.CharField(max_length=40)),
                        ('description', models.TextField(blank=True, null=True)),
                        ('enabled', models.BooleanField(default=True)),
                        ('parameters', models.JSONField(default=dict, help_text='Without the sensitive ones.')),
                        ('encrypted', models.TextField(blank=True, help_text='The sensitive parameters and signing keys.')),
                        ('events', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                        ('projects', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                        ('environments', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                        ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('send_after', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('only_if_users_change', models.BooleanField(db_default=False)),
                        ('production_only', models.BooleanField(db_default=False)),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), db_default=[], size=None)),
                        ('claimed_until', models.DateTimeField(editable=False, null=True)),
                        ('ended', models.JSONField(blank=True, db_default={}, default=dict, editable=False)),
                    ],
                    options={
                        'ordering': ('id',),
                    },
                ),
                migrations.CreateModel(
                    name='Relay',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('settled_id', models.BigIntegerField()),
                        ('mark_id', models.BigIntegerField()),
                        ('mark_xid', models.BigIntegerField()),
                    ],
                ),
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('event_id', models.BigIntegerField(blank=True, null=True)),
                        ('state', models.CharField(choices=[('pending', 'Pending'), ('success', 'Success'), ('successWithErrors', 'With Errors'), ('failed', 'Failed'), ('leftOut', 'Left Out')], db_default='pending', max_length=20)),
                        ('attempts', models.PositiveIntegerField(db_default=0)),
                        ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('first_sent_at', models.DateTimeField(blank=True, null=True)),
                        ('sent_at', models.DateTimeField(blank=True, null=True)),
                        ('milliseconds', models.PositiveIntegerField(blank=True, null=True)),
                        ('state_details', models.TextField(db_default='')),
                        ('details', models.JSONField(blank=True, help_text='What was sent, without secrets.', null=True)),
                        ('integration', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='integrations.integration')),
                    ],
                    options={
                        'verbose_name_plural': 'deliveries',
                        'ordering': ('-id',),
                        'indexes': [models.Index(condition=models.Q(('state', 'pending')), fields=['integration', 'id'], name='pending_deliveries'), models.Index(fields=['integration', '-id'], name='deliveries_newest_first')],
                        'constraints': [models.UniqueConstraint(fields=('integration', 'event_id'), name='one_delivery_of_an_event')],
                    },
                ),
                migrations.CreateModel(
                    name='WrittenLog',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('written_id', models.BigIntegerField(default=0)),
                        ('claimed_until', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                    ],
                ),
                migrations.CreateModel(
                    name='SignalSource',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=100, unique=True)),
                        ('kind', models.CharField(choices=[('generic', 'Any JSON object'), ('alertmanager', 'Alertmanager')], max_length=20)),
                        ('token_hash', models.CharField(editable=False, max_length=64)),
                        ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('token_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('token_by_name', models.TextField(blank=True, db_default='', default='', editable=False)),
                    ],
                    options={
                        'ordering': ('name',),
                    },
                ),
                migrations.CreateModel(
                    name='SignalRule',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=100)),
                        ('match', models.JSONField()),
                        ('project', models.TextField()),
                        ('flag', models.TextField()),
                        ('environment', models.TextField()),
                        ('then', models.CharField(choices=[('turnOff', 'Turn the flag off'), ('pausePlan', 'Pause its release plan'), ('note', "Only note it on the flag's page")], max_length=20)),
                        ('enabled', models.BooleanField(default=False)),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rules', to='integrations.signalsource')),
                        ('suspended_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('suspended_by', models.TextField(blank=True, db_default='', default='', editable=False)),
                    ],
                    options={
                        'ordering': ('id',),
                        'constraints': [models.UniqueConstraint(fields=('source', 'name'), name='signal_rule_names_are_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Signal',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('received_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('body', models.JSONField()),
                        ('results', models.JSONField(default=list)),
                        ('source', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signals', to='integrations.signalsource')),
                    ],
                    options={
                        'ordering': ('-id',),
                        'indexes': [models.Index(fields=['source', '-id'], name='signals_newest_first')],
                    },
                ),
                migrations.CreateModel(
                    name='SignalDone',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=300)),
                        ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='integrations.signalrule')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('rule', 'key'), name='a_rule_acts_once_for_a_key')],
                    },
                ),
                migrations.CreateModel(
                    name='CalendarFeed',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                        ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                ),
            ],
        ),
    ]
