import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce


class Migration(migrations.Migration):

    replaces = [
        ('releases', '0001_initial'),
        ('releases', '0002_impact'),
        ('releases', '0003_schedules'),
        ('releases', '0004_release_plans'),
        ('releases', '0005_changes_of_flag'),
        ('releases', '0006_impact_metrics_are_whole'),
        ('releases', '0007_safeguards_of_flags'),
        ('releases', '0008_pause_if_broken'),
        ('releases', '0009_safeguards_are_approved'),
        ('releases', '0010_summaries_of_measurements'),
        ('releases', '0011_alerts_of_one_name'),
        ('releases', '0012_who_still_approves'),
        ('releases', '0013_safeguards_trust_backend_tokens'),
        ('releases', '0014_fingerprints'),
    ]

    initial = True

    dependencies = [
        ('groups', '__first__'),
        ('projects', '0001_squashed_0038_users_changed'),
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.CreateModel(
                    name='ChangeRequest',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('title', models.CharField(blank=True, max_length=255)),
                        ('state', models.CharField(choices=[('Draft', 'Draft'), ('In review', 'In Review'), ('Approved', 'Approved'), ('Scheduled', 'Scheduled'), ('Applied', 'Applied'), ('Cancelled', 'Cancelled'), ('Rejected', 'Rejected')], default='Draft', max_length=16)),
                        ('state_times', models.JSONField(default=dict)),
                        ('required_approvals', models.PositiveSmallIntegerField(default=1)),
                        ('author_name', models.CharField(max_length=255)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='change_requests', to=settings.AUTH_USER_MODEL)),
                        ('environment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='change_requests', to='projects.environment')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='change_requests', to='projects.project')),
                        ('reviewers', models.ManyToManyField(blank=True, related_name='requested_reviews', to=settings.AUTH_USER_MODEL)),
                        ('impact', models.JSONField(blank=True, null=True)),
                        ('moved', models.JSONField(blank=True, null=True)),
                        ('summary', models.JSONField(blank=True, null=True)),
                        ('fingerprint', models.JSONField(blank=True, null=True)),
                    ],
                    options={
                        'ordering': ('-id',),
                        'indexes': [models.Index(fields=['project', 'state', '-id'], name='change_requests_of_project')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'Draft')), fields=('project', 'environment', 'author'), name='one_draft_of_each_author')],
                    },
                ),
                migrations.CreateModel(
                    name='Change',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('feature', models.CharField(blank=True, max_length=255)),
                        ('action', models.CharField(max_length=40)),
                        ('payload', models.JSONField(null=True)),
                        ('made_from', models.JSONField(null=True)),
                        ('author_name', models.CharField(max_length=255)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='releases.changerequest')),
                    ],
                    options={
                        'ordering': ('id',),
                        'indexes': [models.Index(fields=['feature'], name='changes_of_flag')],
                    },
                ),
                migrations.CreateModel(
                    name='Comment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('text', models.TextField()),
                        ('author_name', models.CharField(max_length=255)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comments', to='releases.changerequest')),
                    ],
                    options={
                        'ordering': ('id',),
                    },
                ),
                migrations.CreateModel(
                    name='Review',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('author_name', models.CharField(max_length=255)),
                        ('approved', models.BooleanField()),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                        ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reviews', to='releases.changerequest')),
                        ('impact', models.JSONField(blank=True, null=True)),
                        ('by_system', models.BooleanField(db_default=False, default=False)),
                        ('fingerprint', models.JSONField(blank=True, null=True)),
                    ],
                    options={
                        'ordering': ('id',),
                        'constraints': [models.UniqueConstraint(fields=('request', 'author'), name='one_review_of_each_author')],
                    },
                ),
                migrations.CreateModel(
                    name='Schedule',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField()),
                        ('by_name', models.CharField(max_length=255)),
                        ('comment', models.TextField(blank=True)),
                        ('status', models.CharField(choices=[('pending', 'Pending'), ('suspended', 'Suspended'), ('failed', 'Failed'), ('done', 'Done')], default='pending', max_length=16)),
                        ('reason', models.TextField(blank=True)),
                        ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='schedules', to=settings.AUTH_USER_MODEL)),
                        ('request', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='schedule', to='releases.changerequest')),
                    ],
                    options={
                        'ordering': ('at', 'id'),
                        'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['at', 'id'], name='pending_schedules')],
                    },
                ),
                migrations.CreateModel(
                    name='Milestone',
                    fields=[
                        ('id', models.CharField(max_length=26, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255)),
                        ('place', models.PositiveSmallIntegerField()),
                        ('strategies', models.JSONField(default=list)),
                        ('transition', models.JSONField(blank=True, null=True)),
                        ('started_at', models.DateTimeField(blank=True, null=True)),
                        ('passed_at', models.DateTimeField(blank=True, null=True)),
                        ('plan', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='milestones', to='releases.releaseplan')),
                        ('template', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='milestones', to='releases.releasetemplate')),
                    ],
                    options={
                        'ordering': ('place', 'id'),
                        'constraints': [models.CheckConstraint(condition=models.Q(('template', None), ('plan', None), _connector='XOR'), name='milestone_of_one')],
                    },
                ),
                migrations.CreateModel(
                    name='ReleasePlan',
                    fields=[
                        ('id', models.CharField(max_length=26, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255)),
                        ('description', models.TextField(blank=True)),
                        ('template_key', models.CharField(blank=True, max_length=26)),
                        ('state', models.CharField(choices=[('planned', 'Planned'), ('running', 'Running'), ('paused', 'Paused'), ('done', 'Done')], default='planned', max_length=8)),
                        ('reason', models.TextField(blank=True)),
                        ('strategy_ids', models.JSONField(default=list)),
                        ('since', models.DateTimeField(blank=True, null=True)),
                        ('paused_at', models.DateTimeField(blank=True, null=True)),
                        ('numbers_from', models.DateTimeField(blank=True, null=True)),
                        ('look_at', models.DateTimeField(blank=True, null=True)),
                        ('approved', models.BooleanField(default=False)),
                        ('by_name', models.CharField(blank=True, max_length=255)),
                        ('is_personal', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('active', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='releases.milestone')),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('environment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='release_plans', to='projects.environment')),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='release_plans', to='projects.flag')),
                        ('pause_if_broken', models.BooleanField(db_default=False, default=False)),
                        ('request', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='releases.changerequest')),
                        ('fingerprints', models.JSONField(blank=True, null=True)),
                    ],
                    options={
                        'ordering': ('-created_at', '-id'),
                        'indexes': [models.Index(condition=models.Q(('state', 'running')), fields=['look_at'], name='running_plans')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'done'), _negated=True), fields=('flag', 'environment'), name='one_plan_of_a_flag')],
                    },
                ),
                migrations.CreateModel(
                    name='ReleaseTemplate',
                    fields=[
                        ('id', models.CharField(max_length=26, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255)),
                        ('description', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('archived_at', models.DateTimeField(blank=True, null=True)),
                        ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='release_templates', to='projects.project')),
                    ],
                    options={
                        'ordering': ('name', 'id'),
                        'constraints': [models.UniqueConstraint(condition=models.Q(('archived_at', None)), fields=('project', 'name'), name='release_template_name_once', nulls_distinct=False)],
                    },
                ),
                migrations.CreateModel(
                    name='Safeguard',
                    fields=[
                        ('id', models.CharField(max_length=26, primary_key=True, serialize=False)),
                        ('source', models.CharField(choices=[('internal', 'Internal'), ('external', 'External'), ('alert', 'Alert')], default='internal', max_length=8)),
                        ('title', models.CharField(blank=True, max_length=255)),
                        ('metric', models.TextField()),
                        ('aggregation', models.CharField(blank=True, max_length=8)),
                        ('time_range', models.CharField(blank=True, max_length=8)),
                        ('labels', models.JSONField(default=dict)),
                        ('compares', models.BooleanField(default=False)),
                        ('operator', models.CharField(default='>', max_length=1)),
                        ('threshold', models.FloatField(default=0)),
                        ('action', models.CharField(choices=[('pause', 'Pause'), ('stepBack', 'Step Back'), ('turnOff', 'Turn Off')], default='pause', max_length=8)),
                        ('firing_since', models.DateTimeField(blank=True, null=True)),
                        ('plan', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='safeguards', to='releases.releaseplan')),
                        ('environment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.environment')),
                        ('flag', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='safeguards', to='projects.flag')),
                        ('look_at', models.DateTimeField(blank=True, null=True)),
                        ('numbers_from', models.DateTimeField(blank=True, null=True)),
                        ('approved', models.BooleanField(db_default=False, default=False)),
                        ('firing', models.JSONField(blank=True, db_default=[], default=list)),
                        ('frontend', models.BooleanField(db_default=False, default=False)),
                    ],
                    options={
                        'ordering': ('id',),
                        'indexes': [models.Index(condition=models.Q(('look_at', None), _negated=True), fields=['look_at'], name='safeguards_of_flags')],
                        'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('source', 'internal'), _negated=True), models.Q(models.Q(('aggregation', ''), _negated=True), models.Q(('time_range', ''), _negated=True)), _connector='OR'), name='impact_metric_has_aggregation_and_time_range'), models.CheckConstraint(condition=models.Q(models.Q(('environment', None), ('flag', None), models.Q(('plan', None), _negated=True)), models.Q(('plan', None), models.Q(('flag', None), _negated=True), models.Q(('environment', None), _negated=True)), _connector='OR'), name='safeguard_of_one')],
                    },
                ),
                migrations.CreateModel(
                    name='MetricChart',
                    fields=[
                        ('id', models.CharField(max_length=26, primary_key=True, serialize=False)),
                        ('title', models.CharField(blank=True, max_length=255)),
                        ('metric', models.CharField(max_length=255)),
                        ('aggregation', models.CharField(max_length=8)),
                        ('time_range', models.CharField(max_length=8)),
                        ('labels', models.JSONField(default=dict)),
                        ('y_axis', models.CharField(choices=[('auto', 'Auto'), ('zero', 'Zero')], default='auto', max_length=4)),
                        ('flag', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='metric_charts', to='projects.flag')),
                    ],
                    options={
                        'ordering': ('id',),
                    },
                ),
            ],
        ),
    ]
