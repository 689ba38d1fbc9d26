import django.db.models.deletion
import django.utils.timezone
import pgtrigger.compiler
import pgtrigger.migrations
import uuid
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce


class Migration(migrations.Migration):

    replaces = [
        ('importer', '0001_initial'),
        ('importer', '0002_checked_at'),
        ('importer', '0003_no_failed_runs'),
        ('importer', '0004_flag_reports'),
        ('importer', '0005_rename_left_out'),
        ('importer', '0006_saved_contexts'),
        ('importer', '0007_promoted_from'),
        ('importer', '0008_source_events'),
        ('importer', '0009_installation_moves'),
        ('importer', '0010_converted_from'),
        ('importer', '0011_users_of_a_move'),
        ('importer', '0012_left_out_of_a_move'),
    ]

    initial = True

    dependencies = [
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.CreateModel(
                    name='ImportRun',
                    fields=[
                        ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                        ('source', models.CharField(choices=[('api', 'Api'), ('console', 'Console'), ('command', 'Command')], max_length=16)),
                        ('state', models.CharField(choices=[('pending', 'Pending'), ('running', 'Running'), ('done', 'Done'), ('undone', 'Undone')], max_length=16)),
                        ('caller_id', models.BigIntegerField(blank=True, null=True)),
                        ('caller_name', models.CharField(max_length=255)),
                        ('project', models.TextField()),
                        ('environment', models.TextField()),
                        ('file_name', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('finished_at', models.DateTimeField(blank=True, null=True)),
                        ('expires_at', models.DateTimeField(blank=True, null=True)),
                        ('counts', models.JSONField(blank=True, default=dict)),
                        ('fingerprint', models.CharField(blank=True, max_length=64)),
                        ('before', models.JSONField(blank=True, default=dict)),
                        ('after', models.JSONField(blank=True, default=dict)),
                        ('body', models.BinaryField(blank=True, null=True)),
                        ('step', models.TextField(blank=True)),
                        ('progress_done', models.PositiveIntegerField(default=0)),
                        ('progress_total', models.PositiveIntegerField(default=0)),
                        ('checked_at', models.DateTimeField(blank=True, null=True)),
                        ('preview', models.JSONField(blank=True, default=dict)),
                        ('size', models.PositiveIntegerField(default=0)),
                        ('excluded', models.JSONField(blank=True, default=list)),
                        ('saved_contexts', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('promoted_from', models.TextField(blank=True, db_default='', default='')),
                        ('converted_from', models.TextField(blank=True, db_default='', default='')),
                    ],
                    options={
                        'ordering': ['-created_at'],
                        'indexes': [models.Index(fields=['project', '-created_at'], name='import_run_project'), models.Index(fields=['state', 'expires_at'], name='import_run_expiry')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagReport',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.TextField()),
                        ('action', models.CharField(max_length=16)),
                        ('reason', models.TextField(blank=True)),
                        ('summary', models.TextField(blank=True)),
                        ('changes', models.JSONField(blank=True, default=list)),
                        ('is_here', models.BooleanField(default=False)),
                        ('run', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='importer.importrun')),
                    ],
                    options={
                        'ordering': ['id'],
                        'indexes': [models.Index(fields=['run', 'id'], name='flag_report_of_run')],
                    },
                ),
                migrations.CreateModel(
                    name='SourceEvent',
                    fields=[
                        ('id', models.BigAutoField(primary_key=True, serialize=False)),
                        ('source', models.TextField()),
                        ('event_id', models.BigIntegerField(help_text='The id there.')),
                        ('created_at', models.DateTimeField()),
                        ('type', models.TextField()),
                        ('created_by', models.TextField(blank=True)),
                        ('project', models.TextField(blank=True, null=True)),
                        ('environment', models.TextField(blank=True, null=True)),
                        ('feature', models.TextField(blank=True, null=True)),
                        ('before', models.JSONField(blank=True, null=True)),
                        ('after', models.JSONField(blank=True, null=True)),
                    ],
                    options={
                        'ordering': ['-created_at', '-event_id'],
                        'indexes': [models.Index(fields=['-created_at', '-event_id'], name='source_event_time'), models.Index(fields=['feature', '-created_at'], name='source_event_feature'), models.Index(fields=['project', '-created_at'], name='source_event_project')],
                        'constraints': [models.UniqueConstraint(fields=('source', 'event_id'), name='source_event_once')],
                    },
                ),
                migrations.CreateModel(
                    name='InstallationMove',
                    fields=[
                        ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                        ('step', models.CharField(choices=[('plan', 'Check'), ('apply', 'Move'), ('prove', 'Proof')], max_length=16)),
                        ('address', models.TextField()),
                        ('projects', models.JSONField(blank=True, default=list)),
                        ('users', models.PositiveIntegerField(default=0)),
                        ('overwrite', models.BooleanField(default=False)),
                        ('caller_id', models.BigIntegerField(blank=True, null=True)),
                        ('caller_name', models.CharField(max_length=255)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('beat_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('finished_at', models.DateTimeField(blank=True, null=True)),
                        ('progress', models.TextField(blank=True)),
                        ('problem', models.TextField(blank=True)),
                        ('report', models.JSONField(blank=True, null=True)),
                        ('proofs', models.JSONField(blank=True, null=True)),
                        ('file_name', models.TextField(blank=True, db_default='', default='')),
                        ('left_out', models.JSONField(blank=True, db_default=[], default=list)),
                    ],
                    options={
                        'ordering': ['-created_at'],
                    },
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='sourceevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='0d75f1df062f40834261e2b268b2358abc0ce1d8', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_003a8', table='importer_sourceevent', when='BEFORE')),
                ),
            ],
        ),
    ]
