import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce


class Migration(migrations.Migration):

    replaces = [
        ('playground', '0001_kept_contexts'),
        ('playground', '0002_saved_contexts'),
        ('playground', '0003_expectations'),
        ('playground', '0004_user_runs'),
        ('playground', '0005_enforced_in'),
        ('playground', '0006_enforce_what_is_expected'),
        ('playground', '0007_own_users'),
        ('playground', '0008_run_kinds'),
    ]

    initial = True

    dependencies = [
        ('groups', '0002_squashed_0014_name_groups_that_differ_by_case'),
        ('groups', '__first__'),
        ('projects', '0001_squashed_0038_users_changed'),
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.CreateModel(
                    name='KeptContext',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('digest', models.CharField(db_index=True, max_length=64)),
                        ('query', models.TextField()),
                        ('kept_at', models.DateTimeField(auto_now=True)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('user', 'digest'), name='kept_once_by_each_user')],
                    },
                ),
                migrations.CreateModel(
                    name='SavedContext',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=100, unique=True)),
                        ('context', models.JSONField(blank=True, default=dict)),
                        ('note', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('created_by', models.CharField(blank=True, max_length=255)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('updated_by', models.CharField(blank=True, max_length=255)),
                        ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='saved_contexts', to='projects.project')),
                        ('expectations', models.JSONField(blank=True, default=list)),
                        ('enforced_in', models.JSONField(blank=True, db_default={}, default=dict, editable=False)),
                    ],
                    options={
                        'ordering': ('name',),
                        'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='saved_context_has_a_name')],
                    },
                ),
                migrations.CreateModel(
                    name='UserRun',
                    fields=[
                        ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                        ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=16)),
                        ('caller_id', models.BigIntegerField(blank=True, null=True)),
                        ('caller_name', models.CharField(max_length=255)),
                        ('projects', models.JSONField(default=list)),
                        ('environment', models.TextField()),
                        ('flag', models.TextField(blank=True)),
                        ('file_name', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField()),
                        ('finished_at', models.DateTimeField(blank=True, null=True)),
                        ('body', models.BinaryField(default=b'')),
                        ('flags', models.PositiveIntegerField(default=0)),
                        ('rows', models.PositiveIntegerField(default=0)),
                        ('rows_done', models.PositiveIntegerField(default=0)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('problem', models.TextField(blank=True)),
                        ('counts', models.JSONField(blank=True, default=list)),
                        ('size', models.BigIntegerField(default=0)),
                        ('kind', models.CharField(choices=[('users', 'Users'), ('assignments', 'Assignments'), ('incident', 'Incident')], db_default='users', default='users', max_length=16)),
                        ('options', models.JSONField(blank=True, db_default={}, default=dict)),
                    ],
                    options={
                        'ordering': ('-created_at',),
                        'indexes': [models.Index(fields=['state', 'created_at'], name='user_run_state')],
                    },
                ),
                migrations.CreateModel(
                    name='UserRunPart',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('data', models.BinaryField()),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='playground.userrun')),
                    ],
                ),
                migrations.CreateModel(
                    name='OwnUsers',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('file_name', models.TextField()),
                        ('number', models.PositiveIntegerField()),
                        ('body', models.BinaryField()),
                        ('kept_at', models.DateTimeField(auto_now=True)),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                    ],
                ),
            ],
        ),
    ]
