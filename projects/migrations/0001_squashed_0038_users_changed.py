import datetime
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
import uuid
from django.conf import settings
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce

REFRESH = r"""
CREATE OR REPLACE FUNCTION projects_refresh_applications(ids bigint[], since timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- One at a time for an application, so that the last to write has seen what all others wrote.
    PERFORM 1 FROM projects_application WHERE id = ANY(ids) ORDER BY id FOR NO KEY UPDATE;
    INSERT INTO projects_projectapplication AS line (
        project_id, application_id, name, search, environments, sdks,
        environment_count, instance_count, sdk_count, last_seen_at, oldest_seen_at)
    WITH places AS (
        SELECT f.project_id, u.application_id, u.environment, max(u.last_used_at) AS used_at
          FROM projects_flagusage u JOIN projects_flag f ON f.id = u.flag_id
         WHERE u.application_id = ANY(ids) GROUP BY 1, 2, 3
    ), used AS (
        SELECT project_id, application_id, max(used_at) AS used_at,
               array_agg(environment ORDER BY environment COLLATE "C") AS environments
          FROM places GROUP BY 1, 2
    ), running AS (
        SELECT p.project_id, p.application_id, max(i.seen_at) AS seen_at,
               min(i.seen_at) FILTER (WHERE i.seen_at >= since) AS oldest_seen_at,
               count(DISTINCT i.instance_id) FILTER (WHERE i.seen_at >= since) AS instances,
               array_agg(DISTINCT i.sdk_version) FILTER (WHERE i.seen_at >= since AND i.sdk_version <> '') AS sdks,
               count(DISTINCT split_part(i.sdk_version, ':', 1))
                   FILTER (WHERE i.seen_at >= since AND i.sdk_version <> '') AS sdk_count,
               string_agg(DISTINCT i.folded_sdk, E'\x1f')
                   FILTER (WHERE i.seen_at >= since AND i.sdk_version <> '') AS folded_sdks
          FROM places p JOIN projects_applicationinstance i
            ON i.application_id = p.application_id AND i.environment = p.environment
         GROUP BY 1, 2
    )
    SELECT u.project_id, u.application_id, a.name,
           concat_ws(E'\x1f', a.folded_name, lower(array_to_string(u.environments, E'\x1f')), r.folded_sdks),
           u.environments, coalesce(r.sdks, '{}'), cardinality(u.environments),
           coalesce(r.instances, 0), coalesce(r.sdk_count, 0), greatest(u.used_at, r.seen_at), r.oldest_seen_at
      FROM used u JOIN projects_application a ON a.id = u.application_id
      LEFT JOIN running r ON r.project_id = u.project_id AND r.application_id = u.application_id
     ORDER BY u.application_id, u.project_id
    ON CONFLICT (project_id, application_id) DO UPDATE SET
        search = excluded.search, environments = excluded.environments, sdks = excluded.sdks,
        environment_count = excluded.environment_count, instance_count = excluded.instance_count,
        sdk_count = excluded.sdk_count, oldest_seen_at = excluded.oldest_seen_at,
        last_seen_at = greatest(line.last_seen_at, excluded.last_seen_at);
    DELETE FROM projects_projectapplication line
     WHERE line.application_id = ANY(ids) AND NOT EXISTS (
           SELECT FROM projects_flagusage u JOIN projects_flag f ON f.id = u.flag_id
            WHERE u.application_id = line.application_id AND f.project_id = line.project_id);
END $$;
"""

TOUCH = """
CREATE SEQUENCE projects_revision_seq;
CREATE FUNCTION projects_touch(projects text[], flags text[]) RETURNS void LANGUAGE sql AS $$
    WITH changed AS (
        SELECT project, array_agg(DISTINCT flag) FILTER (WHERE flag IS NOT NULL) AS names
          FROM unnest(projects, flags) AS f (project, flag) WHERE project IS NOT NULL GROUP BY project
    ), touched AS (
        -- In id order, so that two writers never wait for each other in a circle. The number is drawn anew once
        -- the row is locked, so that the numbers of a project only grow.
        INSERT INTO projects_projectrevision (project_id, revision)
        SELECT project, nextval('projects_revision_seq') FROM (SELECT project FROM changed ORDER BY 1) AS ordered
        ON CONFLICT (project_id) DO UPDATE SET revision = nextval('projects_revision_seq')
        RETURNING project_id, revision
    )
    INSERT INTO projects_changedflags (project_id, revision, names)
    SELECT project_id, revision, CASE WHEN cardinality(names) > 200 THEN NULL ELSE coalesce(names, '{}') END
      FROM touched JOIN changed ON project = project_id
$$;
"""

# A low fill factor lets frequent updates of unindexed columns stay on their page (HOT updates).
ROOM = """
ALTER TABLE projects_applicationinstance SET (fillfactor = 80);
ALTER TABLE projects_flagusage SET (fillfactor = 80);
ALTER TABLE projects_usagehour SET (fillfactor = 80);
ALTER TABLE projects_projectapplication SET (fillfactor = 80);
ALTER TABLE projects_flaglastseen SET (fillfactor = 80);
"""

# Versions before 1.3 delete people and groups without knowing of owners.
OWNERS = """
ALTER TABLE projects_flag
    DROP CONSTRAINT projects_flag_owner_group_id_a10fa9cd_fk_groups_group_id,
    DROP CONSTRAINT projects_flag_owner_user_id_60dfc542_fk_groups_user_id,
    ADD CONSTRAINT projects_flag_owner_group_id_a10fa9cd_fk_groups_group_id
        FOREIGN KEY (owner_group_id) REFERENCES groups_group ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT projects_flag_owner_user_id_60dfc542_fk_groups_user_id
        FOREIGN KEY (owner_user_id) REFERENCES groups_user ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED
"""


def clear_owners(apps, schema_editor):
    # The foreign keys are made when the migration ends, and then this.
    schema_editor.deferred_sql.append(OWNERS)



class Migration(migrations.Migration):

    replaces = [
        ('projects', '0001_initial'),
        ('projects', '0002_revision_numbers'),
        ('projects', '0003_applications'),
        ('projects', '0004_lifecycle_by_usage'),
        ('projects', '0005_applications_index'),
        ('projects', '0006_usage_ends_with_environment'),
        ('projects', '0007_application_counts_in_index'),
        ('projects', '0008_lifecycle_in_order'),
        ('projects', '0009_sdk_flavor'),
        ('projects', '0010_tags_flag_types_completion'),
        ('projects', '0011_ignored_reports'),
        ('projects', '0012_strategy_ids_in_order_of_creation'),
        ('projects', '0013_impact_metrics'),
        ('projects', '0014_usage_sums'),
        ('projects', '0015_strategy_share'),
        ('projects', '0016_changes_outside'),
        ('projects', '0017_notify_of_changes'),
        ('projects', '0018_refuse_broken_expectations'),
        ('projects', '0019_sdk_versions'),
        ('projects', '0020_indexes_of_flag_environments'),
        ('projects', '0021_unknown_flags'),
        ('projects', '0022_favorites'),
        ('projects', '0023_refused_requests'),
        ('projects', '0024_comments'),
        ('projects', '0025_approvals'),
        ('projects', '0026_flag_owner'),
        ('projects', '0027_approval_rules'),
        ('projects', '0028_impact_points'),
        ('projects', '0029_counted_reports'),
        ('projects', '0030_code_references'),
        ('projects', '0031_relays'),
        ('projects', '0032_link_templates'),
        ('projects', '0033_share_of_percentages'),
        ('projects', '0034_origin_of_impact_metrics'),
        ('projects', '0035_token_of_a_relay'),
        ('projects', '0036_versions'),
        ('projects', '0037_changed_flags'),
        ('projects', '0038_users_changed'),
    ]

    initial = True

    dependencies = [
        ('audit', '0001_squashed_0007_transaction_before_events'),
        ('groups', '__first__'),
        ('mfa', '0003_authenticator_type_uniq'),
        ('socialaccount', '0006_alter_socialaccount_extra_data'),
        ('usersessions', '0001_initial'),
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.CreateModel(
                    name='Project',
                    fields=[
                        ('id', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255)),
                        ('description', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('archived_at', models.DateTimeField(blank=True, null=True)),
                        ('default_stickiness', models.CharField(default='default', max_length=100)),
                        ('flag_limit', models.PositiveIntegerField(blank=True, help_text='The most flags it may have at once.', null=True, validators=[django.core.validators.MinValueValidator(1)])),
                        ('naming_pattern', models.TextField(blank=True, help_text='A regular expression that names of new flags match as a whole.')),
                        ('naming_example', models.TextField(blank=True)),
                        ('naming_description', models.TextField(blank=True)),
                        ('environments', models.ManyToManyField(related_name='projects', through='projects.ProjectEnvironment', to='projects.environment')),
                        ('refuse_broken_expectations', models.BooleanField(db_default=False, default=False, help_text='Refuse changes that break an expectation of a saved context.')),
                        ('comment_links', models.JSONField(blank=True, db_default=[], default=list, help_text='Parts of comments that become links: [{"pattern": …, "url": "https://…/{match}"}].')),
                        ('link_templates', models.JSONField(blank=True, db_default=[], default=list, help_text='Links that new flags get: [{"title": …, "urlTemplate": "https://…/{{feature}}"}].')),
                    ],
                    options={
                        'ordering': ['id'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('id', ''), _negated=True), name='project_id_not_empty')],
                    },
                ),
                migrations.CreateModel(
                    name='StrategyType',
                    fields=[
                        ('name', models.CharField(max_length=255, primary_key=True, serialize=False)),
                        ('title', models.CharField(blank=True, max_length=255)),
                        ('description', models.TextField(blank=True)),
                        ('parameters', models.JSONField(blank=True, default=list)),
                        ('built_in', models.BooleanField(default=False)),
                        ('deprecated', models.BooleanField(default=False)),
                        ('sort_order', models.IntegerField(default=9999)),
                    ],
                    options={
                        'ordering': ['sort_order', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='Environment',
                    fields=[
                        ('name', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('type', models.CharField(default='production', max_length=100)),
                        ('enabled', models.BooleanField(default=True)),
                        ('sort_order', models.IntegerField(default=9999)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'ordering': ['sort_order', 'name'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='environment_name_not_empty')],
                    },
                ),
                migrations.CreateModel(
                    name='Flag',
                    fields=[
                        ('id', models.BigAutoField(primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=100, unique=True)),
                        ('type', models.CharField(default='release', max_length=100)),
                        ('description', models.TextField(blank=True, null=True)),
                        ('stale', models.BooleanField(default=False)),
                        ('impression_data', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField()),
                        ('archived_at', models.DateTimeField(blank=True, null=True)),
                        ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='flags', to='projects.project')),
                        ('owner_group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='owned_flags', to='groups.group')),
                        ('owner_user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='owned_flags', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['name'],
                        'indexes': [models.Index(fields=['project', 'name'], name='flag_project_name')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='flag_name_not_empty'), models.CheckConstraint(condition=models.Q(('owner_user', None), ('owner_group', None), _connector='OR'), name='flag_owner_user_or_group')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagEnvironment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('enabled', models.BooleanField(default=False)),
                        ('variants', models.JSONField(blank=True, default=list)),
                        ('environment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='projects.environment')),
                        ('flag', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='environments', to='projects.flag')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['environment', 'flag'], name='flag_environment_place')],
                        'constraints': [models.UniqueConstraint(fields=('flag', 'environment'), name='flag_environment_once')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagLastSeen',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('environment', models.TextField()),
                        ('seen_at', models.DateTimeField()),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='last_seen', to='projects.flag')),
                    ],
                    options={
                        'verbose_name_plural': 'flags last seen',
                        'constraints': [models.UniqueConstraint(fields=('flag', 'environment'), name='flag_last_seen_once')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagLink',
                    fields=[
                        ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                        ('url', models.TextField()),
                        ('title', models.TextField(blank=True, null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='links', to='projects.flag')),
                    ],
                    options={
                        'ordering': ['created_at', 'id'],
                    },
                ),
                migrations.CreateModel(
                    name='LifecycleStage',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('stage', models.CharField(choices=[('initial', 'Initial'), ('pre-live', 'Pre Live'), ('live', 'Live'), ('completed', 'Completed'), ('archived', 'Archived')], max_length=16)),
                        ('entered_at', models.DateTimeField()),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='lifecycle', to='projects.flag')),
                        ('status', models.CharField(help_text='Of a completed flag: kept or discarded.', max_length=16, null=True)),
                        ('status_value', models.CharField(help_text='The variant that was kept.', max_length=255, null=True)),
                    ],
                    options={
                        'ordering': ['entered_at', 'id'],
                        'constraints': [models.UniqueConstraint(fields=('flag', 'stage'), name='lifecycle_stage_once'), models.CheckConstraint(condition=models.Q(('stage__in', ['initial', 'pre-live', 'live', 'completed', 'archived'])), name='lifecycle_stage_known')],
                    },
                ),
                migrations.CreateModel(
                    name='ContextField',
                    fields=[
                        ('name', models.CharField(max_length=255, primary_key=True, serialize=False)),
                        ('description', models.TextField(blank=True, null=True)),
                        ('stickiness', models.BooleanField(default=False)),
                        ('sort_order', models.IntegerField(default=10)),
                        ('legal_values', models.JSONField(blank=True, default=list, help_text='[{"value": …, "description": …}]')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='context_fields', to='projects.project')),
                    ],
                    options={
                        'ordering': ['sort_order', 'name'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='context_field_name_not_empty')],
                    },
                ),
                migrations.CreateModel(
                    name='ProjectEnvironment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('default_strategy', models.JSONField(blank=True, null=True)),
                        ('environment', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='project_links', to='projects.environment')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='environment_links', to='projects.project')),
                        ('comment_required', models.BooleanField(db_default=False, default=False, help_text='Whether changes in it need a comment.')),
                        ('required_approvals', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('approval_rules', models.JSONField(blank=True, db_default=[], default=list)),
                        ('approver_groups', models.JSONField(blank=True, db_default=[], default=list)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'environment'), name='project_environment_once'), models.CheckConstraint(condition=models.Q(('required_approvals', None), ('required_approvals__lte', 10), _connector='OR'), name='project_environment_approvals')],
                    },
                ),
                migrations.CreateModel(
                    name='ProjectRevision',
                    fields=[
                        ('project_id', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('revision', models.BigIntegerField()),
                    ],
                    options={
                        'indexes': [models.Index(fields=['project_id'], include=('revision',), name='project_revision_covering')],
                    },
                ),
                migrations.CreateModel(
                    name='Segment',
                    fields=[
                        ('id', models.BigAutoField(primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255, unique=True)),
                        ('description', models.TextField(blank=True, null=True)),
                        ('constraints', models.JSONField(blank=True, default=list)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('created_by', models.CharField(blank=True, max_length=255)),
                        ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='segments', to='projects.project')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='segment_name_not_empty')],
                    },
                ),
                migrations.CreateModel(
                    name='Strategy',
                    fields=[
                        ('id', models.UUIDField(primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255, verbose_name='strategy type')),
                        ('title', models.TextField(blank=True, null=True)),
                        ('disabled', models.BooleanField(default=False)),
                        ('sort_order', models.IntegerField(default=0)),
                        ('parameters', models.JSONField(blank=True, default=dict)),
                        ('constraints', models.JSONField(blank=True, default=list)),
                        ('variants', models.JSONField(blank=True, default=list)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('environment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='projects.environment')),
                        ('flag', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='strategies', to='projects.flag')),
                        ('segments', models.ManyToManyField(blank=True, related_name='strategies', through='projects.StrategySegment', to='projects.segment')),
                        ('share', models.GeneratedField(db_persist=True, expression=django.db.models.expressions.RawSQL("CASE WHEN name = 'default' THEN 100\n     WHEN name = 'flexibleRollout' THEN CASE WHEN (parameters ->> 'rollout') ~ '^[+]?[0-9]{1,18}$' THEN CASE WHEN (parameters ->> 'rollout')::numeric > 100 THEN 0 ELSE (parameters ->> 'rollout')::numeric END ELSE 0 END\n     WHEN name IN ('gradualRolloutUserId', 'gradualRolloutSessionId', 'gradualRolloutRandom') THEN CASE WHEN (parameters ->> 'percentage') ~ '^[+]?[0-9]{1,18}$' THEN CASE WHEN (parameters ->> 'percentage')::numeric > 100 THEN CASE WHEN name = 'gradualRolloutRandom' THEN 100 ELSE 0 END ELSE (parameters ->> 'percentage')::numeric END ELSE 0 END END", []), output_field=models.SmallIntegerField(null=True))),
                    ],
                    options={
                        'verbose_name_plural': 'strategies',
                        'ordering': ['sort_order', 'id'],
                        'indexes': [models.Index(fields=['flag', 'environment', 'sort_order'], name='strategy_place'), models.Index(fields=['environment', 'flag', 'disabled', 'share'], name='strategy_share')],
                    },
                ),
                migrations.CreateModel(
                    name='StrategySegment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('segment', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='strategy_links', to='projects.segment')),
                        ('strategy', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='segment_links', to='projects.strategy')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('strategy', 'segment'), name='strategy_segment_once')],
                    },
                ),
                migrations.CreateModel(
                    name='TagType',
                    fields=[
                        ('name', models.CharField(max_length=50, primary_key=True, serialize=False)),
                        ('description', models.TextField(blank=True)),
                        ('icon', models.CharField(blank=True, max_length=255, null=True)),
                        ('color', models.CharField(blank=True, max_length=7, null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('name__length__gte', 2)), name='tag_type_name_length')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagTag',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('value', models.CharField(max_length=50)),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tags', to='projects.flag')),
                        ('tag_type', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='tags', to='projects.tagtype')),
                    ],
                    options={
                        'ordering': ['tag_type', 'value'],
                        'indexes': [models.Index(fields=['value', 'tag_type'], name='flag_tag_value')],
                        'constraints': [models.UniqueConstraint(fields=('flag', 'tag_type', 'value'), name='flag_tag_once'), models.CheckConstraint(condition=models.Q(('value__length__gte', 2)), name='flag_tag_value_length')],
                    },
                ),
                migrations.CreateModel(
                    name='Dependency',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('enabled', models.BooleanField(default=True)),
                        ('variants', models.JSONField(blank=True, default=list)),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parents', to='projects.flag')),
                        ('parent', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='children', to='projects.flag')),
                    ],
                    options={
                        'verbose_name_plural': 'dependencies',
                        'constraints': [models.UniqueConstraint(fields=('flag', 'parent'), name='dependency_once'), models.CheckConstraint(condition=models.Q(('flag', models.F('parent')), _negated=True), name='dependency_not_on_itself')],
                    },
                ),
                migrations.CreateModel(
                    name='Application',
                    fields=[
                        ('id', models.BigAutoField(primary_key=True, serialize=False)),
                        ('name', models.TextField(db_collation='C', unique=True)),
                        ('folded_name', models.TextField(editable=False)),
                        ('strategies', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, size=None)),
                        ('created_at', models.DateTimeField()),
                        ('color', models.CharField(blank=True, max_length=50, null=True)),
                        ('description', models.TextField(blank=True, null=True)),
                        ('icon', models.CharField(blank=True, max_length=255, null=True)),
                        ('url', models.TextField(blank=True, null=True)),
                    ],
                    options={
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='ApplicationInstance',
                    fields=[
                        ('id', models.BigAutoField(primary_key=True, serialize=False)),
                        ('environment', models.TextField()),
                        ('instance_id', models.TextField(db_collation='C')),
                        ('sdk_version', models.TextField(blank=True)),
                        ('folded_sdk', models.TextField(blank=True, editable=False)),
                        ('sdk_type', models.TextField(default='backend')),
                        ('platform_name', models.TextField(blank=True)),
                        ('platform_version', models.TextField(blank=True)),
                        ('spec_version', models.TextField(blank=True)),
                        ('engine_version', models.TextField(blank=True)),
                        ('first_seen_at', models.DateTimeField()),
                        ('seen_at', models.DateTimeField()),
                        ('application', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='projects.application')),
                        ('sdk_flavor', models.TextField(blank=True, db_default='', default='')),
                    ],
                    options={
                        'ordering': ['application', 'instance_id', 'environment'],
                        'constraints': [models.UniqueConstraint(fields=('application', 'instance_id', 'environment'), name='application_instance_once')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagUsage',
                    fields=[
                        ('pk', models.CompositePrimaryKey('application_id', 'flag_id', 'environment', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('application_id', models.BigIntegerField()),
                        ('flag_id', models.BigIntegerField(db_index=True)),
                        ('environment', models.TextField()),
                        ('last_used_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='ProjectApplication',
                    fields=[
                        ('pk', models.CompositePrimaryKey('project_id', 'application_id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('project_id', models.CharField(max_length=100)),
                        ('application_id', models.BigIntegerField(db_index=True)),
                        ('name', models.TextField(db_collation='C')),
                        ('search', models.TextField()),
                        ('environments', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                        ('sdks', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                        ('environment_count', models.IntegerField(default=0)),
                        ('instance_count', models.IntegerField(default=0)),
                        ('sdk_count', models.IntegerField(default=0)),
                        ('last_seen_at', models.DateTimeField()),
                        ('oldest_seen_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['project_id', 'oldest_seen_at'], name='project_application_oldest'), models.Index(fields=['project_id', 'name'], include=('application_id', 'environment_count', 'instance_count', 'sdk_count'), name='project_application_name')],
                    },
                ),
                migrations.CreateModel(
                    name='UsageHour',
                    fields=[
                        ('pk', models.CompositePrimaryKey('flag_id', 'environment', 'hour', 'application_id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('flag_id', models.BigIntegerField()),
                        ('environment', models.TextField()),
                        ('hour', models.DateTimeField(db_index=True)),
                        ('application_id', models.BigIntegerField()),
                        ('yes', models.BigIntegerField(default=0)),
                        ('no', models.BigIntegerField(default=0)),
                        ('variants', models.JSONField(default=dict)),
                    ],
                ),
                migrations.CreateModel(
                    name='FlagType',
                    fields=[
                        ('id', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=255)),
                        ('description', models.TextField()),
                        ('lifetime_days', models.PositiveIntegerField(blank=True, null=True)),
                        ('sort_order', models.IntegerField(default=0)),
                    ],
                    options={
                        'ordering': ['sort_order', 'id'],
                    },
                ),
                migrations.CreateModel(
                    name='Tag',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('value', models.CharField(max_length=50)),
                        ('tag_type', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.tagtype')),
                    ],
                    options={
                        'ordering': ['tag_type', 'value'],
                        'constraints': [models.UniqueConstraint(fields=('tag_type', 'value'), name='tag_once'), models.CheckConstraint(condition=models.Q(('value__length__gte', 2)), name='tag_value_length')],
                    },
                ),
                migrations.CreateModel(
                    name='IgnoredReport',
                    fields=[
                        ('pk', models.CompositePrimaryKey('hour', 'kind', 'token_id', 'application', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('hour', models.DateTimeField()),
                        ('kind', models.TextField()),
                        ('token_id', models.BigIntegerField(default=0)),
                        ('application', models.TextField(default='')),
                        ('number', models.BigIntegerField(default=0)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['application'], name='ignored_report_application')],
                    },
                ),
                migrations.CreateModel(
                    name='ImpactSeries',
                    fields=[
                        ('pk', models.CompositePrimaryKey('name', 'labels', 'origin', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('name', models.TextField(db_collation='C')),
                        ('labels', models.TextField(db_collation='C')),
                        ('kind', models.TextField()),
                        ('help', models.TextField(blank=True)),
                        ('value', models.FloatField(default=0)),
                        ('count', models.BigIntegerField(default=0)),
                        ('buckets', models.JSONField(default=dict)),
                        ('seen_at', models.DateTimeField()),
                        ('origin', models.TextField(blank=True, db_collation='C', db_default='', default='')),
                    ],
                    options={
                        'verbose_name_plural': 'impact series',
                    },
                ),
                migrations.CreateModel(
                    name='UsageDay',
                    fields=[
                        ('pk', models.CompositePrimaryKey('flag_id', 'environment', 'day', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('flag_id', models.BigIntegerField()),
                        ('environment', models.TextField()),
                        ('day', models.DateField(db_index=True)),
                        ('yes', models.BigIntegerField(default=0)),
                        ('no', models.BigIntegerField(default=0)),
                        ('variants', models.JSONField(default=dict)),
                    ],
                ),
                migrations.CreateModel(
                    name='UsageTotal',
                    fields=[
                        ('pk', models.CompositePrimaryKey('hour', 'project_id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('hour', models.DateTimeField()),
                        ('project_id', models.CharField(max_length=100)),
                        ('yes', models.BigIntegerField(default=0)),
                        ('no', models.BigIntegerField(default=0)),
                    ],
                ),
                migrations.CreateModel(
                    name='OutsideChange',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('project_id', models.CharField(max_length=100)),
                        ('noticed_at', models.DateTimeField()),
                    ],
                    options={
                        'indexes': [models.Index(fields=['project_id', 'noticed_at'], name='outside_change_project')],
                    },
                ),
                migrations.CreateModel(
                    name='SdkVersion',
                    fields=[
                        ('scope', models.CharField(max_length=64, primary_key=True, serialize=False)),
                        ('version', models.BigIntegerField(unique=True)),
                        ('revisions', models.JSONField()),
                        ('seen_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='UnknownFlag',
                    fields=[
                        ('pk', models.CompositePrimaryKey('application_id', 'environment', 'name', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('application_id', models.BigIntegerField()),
                        ('environment', models.TextField()),
                        ('name', models.TextField(db_collation='C')),
                        ('seen_at', models.DateTimeField(db_index=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='FavoriteFlag',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='favorite_flags', to=settings.AUTH_USER_MODEL)),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='favorites', to='projects.flag')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('user', 'flag'), name='favourite_flag_once')],
                        'db_table': 'projects_favouriteflag',
                    },
                ),
                migrations.CreateModel(
                    name='FavoriteProject',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='favorite_projects', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='favorites', to='projects.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('user', 'project'), name='favourite_project_once')],
                        'db_table': 'projects_favouriteproject',
                    },
                ),
                migrations.CreateModel(
                    name='RefusedRequest',
                    fields=[
                        ('fingerprint', models.TextField(primary_key=True, serialize=False)),
                        ('seen_at', models.DateTimeField(db_index=True)),
                        ('message', models.TextField()),
                        ('project', models.TextField()),
                        ('environment', models.TextField()),
                        ('ending', models.TextField()),
                        ('sdk', models.TextField()),
                        ('application', models.TextField()),
                        ('address', models.TextField()),
                    ],
                ),
                migrations.CreateModel(
                    name='ImpactPoint',
                    fields=[
                        ('pk', models.CompositePrimaryKey('name', 'at', 'labels', 'is_hour', 'origin', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('name', models.TextField(db_collation='C')),
                        ('at', models.DateTimeField()),
                        ('labels', models.TextField(db_collation='C')),
                        ('is_hour', models.BooleanField(default=False)),
                        ('kind', models.TextField()),
                        ('value', models.FloatField(default=0)),
                        ('count', models.BigIntegerField(default=0)),
                        ('buckets', models.JSONField(default=dict)),
                        ('origin', models.TextField(blank=True, db_collation='C', db_default='', default='')),
                    ],
                    options={
                        'verbose_name_plural': 'impact points',
                        'indexes': [models.Index(fields=['at'], name='impact_point_age')],
                    },
                ),
                migrations.CreateModel(
                    name='CountedReport',
                    fields=[
                        ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                        ('counted_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='CodeReport',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('repository', models.CharField(max_length=200, unique=True)),
                        ('revision', models.CharField(blank=True, max_length=100)),
                        ('link', models.CharField(blank=True, max_length=500)),
                        ('reported_at', models.DateTimeField()),
                        ('reported_by', models.CharField(max_length=255)),
                    ],
                    options={
                        'ordering': ['repository'],
                    },
                ),
                migrations.CreateModel(
                    name='CodeReference',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('count', models.PositiveIntegerField()),
                        ('places', models.JSONField()),
                        ('flag', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='references', to='projects.flag')),
                        ('report', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='references', to='projects.codereport')),
                    ],
                    options={
                        'ordering': ['report', 'flag'],
                        'constraints': [models.UniqueConstraint(fields=('report', 'flag'), name='code_reference_once')],
                    },
                ),
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
                        ('token_id', models.BigIntegerField(db_default=0, default=0)),
                    ],
                    options={
                        'ordering': ['region', 'identifier'],
                    },
                ),
                migrations.CreateModel(
                    name='ImpactOrigin',
                    fields=[
                        ('id', models.TextField(db_collation='C', primary_key=True, serialize=False)),
                        ('is_frontend', models.BooleanField()),
                        ('projects', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                    ],
                ),
                migrations.CreateModel(
                    name='ContextFieldVersion',
                    fields=[
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('pk', models.CompositePrimaryKey('name', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('name', models.TextField()),
                        ('stickiness', models.BooleanField()),
                        ('project_id', models.TextField(null=True)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='DependencyVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.BigIntegerField()),
                        ('flag_id', models.BigIntegerField()),
                        ('parent_id', models.BigIntegerField()),
                        ('enabled', models.BooleanField()),
                        ('variants', models.JSONField()),
                    ],
                    options={
                        'indexes': [models.Index(fields=['flag_id', 'valid_to'], name='dependency_version_flag_id'), models.Index(fields=['valid_from'], name='dependency_version_began'), models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='dependency_version_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagEnvironmentVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.BigIntegerField()),
                        ('flag_id', models.BigIntegerField()),
                        ('environment_id', models.TextField()),
                        ('enabled', models.BooleanField()),
                        ('variants', models.JSONField()),
                    ],
                    options={
                        'indexes': [models.Index(fields=['flag_id', 'environment_id', 'valid_to'], name='place_version_flag_id'), models.Index(fields=['valid_from'], name='place_version_began'), models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='place_version_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='FlagVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.BigIntegerField()),
                        ('name', models.TextField()),
                        ('project_id', models.TextField()),
                        ('type', models.TextField()),
                        ('description', models.TextField(null=True)),
                        ('stale', models.BooleanField()),
                        ('impression_data', models.BooleanField()),
                        ('created_at', models.DateTimeField()),
                        ('archived_at', models.DateTimeField(null=True)),
                        ('owner_user_id', models.BigIntegerField(null=True)),
                        ('owner_group_id', models.BigIntegerField(null=True)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['name', 'valid_to'], name='flag_version_name'), models.Index(fields=['project_id', 'valid_to'], name='flag_version_project_id'), models.Index(fields=['valid_from'], name='flag_version_began'), models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='flag_version_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='ProjectEnvironmentVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.BigIntegerField()),
                        ('project_id', models.TextField()),
                        ('environment_id', models.TextField()),
                        ('default_strategy', models.JSONField(null=True)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['project_id', 'valid_to'], name='use_version_project_id')],
                    },
                ),
                migrations.CreateModel(
                    name='SegmentVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.BigIntegerField()),
                        ('name', models.TextField()),
                        ('description', models.TextField(null=True)),
                        ('constraints', models.JSONField()),
                        ('project_id', models.TextField(null=True)),
                    ],
                    options={
                        'indexes': [models.Index(fields=['valid_from'], name='segment_version_began'), models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='segment_version_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='StrategySegmentVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.BigIntegerField()),
                        ('strategy_id', models.UUIDField()),
                        ('segment_id', models.BigIntegerField()),
                    ],
                    options={
                        'indexes': [models.Index(fields=['strategy_id', 'valid_to'], name='link_version_strategy_id'), models.Index(fields=['valid_from'], name='link_version_began'), models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='link_version_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='StrategyVersion',
                    fields=[
                        ('pk', models.CompositePrimaryKey('id', 'valid_to', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('valid_from', models.DateTimeField()),
                        ('valid_to', models.DateTimeField(db_default=datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))),
                        ('id', models.UUIDField()),
                        ('flag_id', models.BigIntegerField()),
                        ('environment_id', models.TextField()),
                        ('name', models.TextField()),
                        ('title', models.TextField(null=True)),
                        ('disabled', models.BooleanField()),
                        ('sort_order', models.IntegerField()),
                        ('parameters', models.JSONField()),
                        ('constraints', models.JSONField()),
                        ('variants', models.JSONField()),
                    ],
                    options={
                        'indexes': [models.Index(fields=['flag_id', 'environment_id', 'valid_to'], name='strategy_version_flag_id'), models.Index(fields=['valid_from'], name='strategy_version_began'), models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='strategy_version_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='VersionsSince',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('since', models.DateTimeField()),
                        ('kept_since', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='ChangedFlags',
                    fields=[
                        ('pk', models.CompositePrimaryKey('project_id', 'revision', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('project_id', models.CharField(max_length=100)),
                        ('revision', models.BigIntegerField()),
                        ('names', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None)),
                    ],
                ),
                migrations.CreateModel(
                    name='UsersChanged',
                    fields=[
                        ('pk', models.CompositePrimaryKey('feature', 'at', 'began', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('feature', models.TextField()),
                        ('began', models.DateTimeField()),
                        ('at', models.DateTimeField()),
                        ('places', models.JSONField()),
                        ('more', models.IntegerField()),
                    ],
                ),
                migrations.RunSQL(REFRESH, 'DROP FUNCTION projects_refresh_applications(bigint[], timestamptz)'),
                migrations.RunSQL(TOUCH, 'DROP FUNCTION projects_touch(text[], text[]); DROP SEQUENCE projects_revision_seq'),
                pgtrigger.migrations.AddTrigger(
                    model_name='project',
                    trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT r.id, NULL FROM new_rows r) AS f (project, flag); RETURN NULL;', hash='fb40a1283014904d04d88aba12a026b8f2ddd5e3', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_f83c6', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_project', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='project',
                    trigger=pgtrigger.compiler.Trigger(name='revision_forget', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM projects_projectrevision WHERE project_id IN (SELECT id FROM old_rows); DELETE FROM projects_changedflags WHERE project_id IN (SELECT id FROM old_rows); RETURN NULL;', hash='98b9fd10a0d48a42f49ac3e2993770283470e29d', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_forget_344a0', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_project', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='environment',
                    trigger=pgtrigger.compiler.Trigger(name='usage_ends', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE used bigint[];', func="\nDELETE FROM projects_flaglastseen WHERE environment IN (SELECT name FROM old_rows);\nused := ARRAY(SELECT DISTINCT application_id FROM projects_flagusage\n               WHERE environment IN (SELECT name FROM old_rows));\nPERFORM 1 FROM projects_application WHERE id = ANY(used) ORDER BY id FOR NO KEY UPDATE;\nDELETE FROM projects_applicationinstance WHERE environment IN (SELECT name FROM old_rows);\nDELETE FROM projects_flagusage WHERE environment IN (SELECT name FROM old_rows);\nDELETE FROM projects_usagehour WHERE environment IN (SELECT name FROM old_rows);\nDELETE FROM projects_usageday WHERE environment IN (SELECT name FROM old_rows);\nPERFORM projects_refresh_applications(used, '-infinity');\nRETURN NULL;\n", hash='f3ef7ab9b49dce4c8bb7ed9b1d0c746f45b6bdf2', level='STATEMENT', operation='DELETE', pgid='pgtrigger_usage_ends_80956', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_environment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='usage_moves', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE used bigint[];', func="\nused := ARRAY(SELECT DISTINCT u.application_id\n                FROM new_rows n JOIN old_rows o ON o.id = n.id AND o.project_id <> n.project_id\n                JOIN projects_flagusage u ON u.flag_id = n.id);\nIF cardinality(used) > 0 THEN\n    PERFORM projects_refresh_applications(used, '-infinity');\nEND IF;\nRETURN NULL;\n", hash='bde6c2b57046f3b085c3d8e898dd1866ec6f5a01', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_usage_moves_4fc0d', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='usage_goes', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE used bigint[];', func="\nused := ARRAY(SELECT DISTINCT u.application_id FROM projects_flagusage u JOIN old_rows o ON o.id = u.flag_id);\nIF cardinality(used) > 0 THEN\n    PERFORM 1 FROM projects_application WHERE id = ANY(used) ORDER BY id FOR NO KEY UPDATE;\n    PERFORM 1 FROM projects_flagusage WHERE flag_id IN (SELECT id FROM old_rows)\n      ORDER BY application_id, flag_id, environment FOR UPDATE;\n    DELETE FROM projects_flagusage WHERE flag_id IN (SELECT id FROM old_rows);\n    DELETE FROM projects_usagehour WHERE flag_id IN (SELECT id FROM old_rows);\n    DELETE FROM projects_usageday WHERE flag_id IN (SELECT id FROM old_rows);\n    PERFORM projects_refresh_applications(used, '-infinity');\nEND IF;\nRETURN NULL;\n", hash='5503fe758eac60bf4a705ab3dfe73ed4ac5b46bd', level='STATEMENT', operation='DELETE', pgid='pgtrigger_usage_goes_dc728', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_flagversion (id, name, project_id, type, description, stale, impression_data, created_at, archived_at, owner_user_id, owner_group_id, valid_from)\n    SELECT id, name, project_id, type, description, stale, impression_data, created_at, archived_at, owner_user_id, owner_group_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_flagversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='f30c8915981472c58b880cd2b9b422175b4a83e0', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_f7e20', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.name, o.project_id, o.type, o.description, o.stale, o.impression_data, o.created_at, o.archived_at, o.owner_user_id, o.owner_group_id) IS DISTINCT FROM (n.id, n.name, n.project_id, n.type, n.description, n.stale, n.impression_data, n.created_at, n.archived_at, n.owner_user_id, n.owner_group_id));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_flagversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_flagversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_flagversion (id, name, project_id, type, description, stale, impression_data, created_at, archived_at, owner_user_id, owner_group_id, valid_from)\n    SELECT id, name, project_id, type, description, stale, impression_data, created_at, archived_at, owner_user_id, owner_group_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_flagversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='4eb8ba3b254bd7db22f587a4fc14bb310cb75935', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_31f95', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_flagversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_flagversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='c5da1fbd3617ec999f5ca15d123c4ff5ee1e8c78', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_a2f21', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT r.project_id, r.name FROM new_rows r) AS f (project, flag); RETURN NULL;', hash='138105d9281a8b2871803952f02f8ddd61616e61', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_a5dc3', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='revision_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT r.project_id, r.name FROM old_rows r) AS f (project, flag); RETURN NULL;', hash='ef5e202cd1f5042d6745e998449eba36b16a6015', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_delete_16da1', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flag',
                    trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT r.project_id, r.name FROM ((SELECT id, name, project_id, type, description, stale, impression_data, archived_at FROM new_rows EXCEPT SELECT id, name, project_id, type, description, stale, impression_data, archived_at FROM old_rows) UNION ALL (SELECT id, name, project_id, type, description, stale, impression_data, archived_at FROM old_rows EXCEPT SELECT id, name, project_id, type, description, stale, impression_data, archived_at FROM new_rows)) r) AS f (project, flag); RETURN NULL;', hash='923bd1049f006db65c14744c6b40a84b48228b6a', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_71769', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_flag', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flagenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_flagenvironmentversion (id, flag_id, environment_id, enabled, variants, valid_from)\n    SELECT id, flag_id, environment_id, enabled, variants, greatest(moment, (SELECT max(v.valid_to) FROM projects_flagenvironmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='66eec108ee3b9303ce854746be42623e705e3c4a', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_8cab7', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_flagenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flagenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.flag_id, o.environment_id, o.enabled, o.variants) IS DISTINCT FROM (n.id, n.flag_id, n.environment_id, n.enabled, n.variants));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_flagenvironmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_flagenvironmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_flagenvironmentversion (id, flag_id, environment_id, enabled, variants, valid_from)\n    SELECT id, flag_id, environment_id, enabled, variants, greatest(moment, (SELECT max(v.valid_to) FROM projects_flagenvironmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='ba6567feba480df14586f2f08b7d7a3cfbb5efaa', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_de626', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_flagenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flagenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_flagenvironmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_flagenvironmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='555fdc44ded04eb225aed8f2c0ed8057e77c0b1b', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_68fda', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_flagenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flagenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM new_rows r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='5be903142595f6f0c27d9d00c7160544fe05d8a3', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_7888d', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_flagenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flagenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM old_rows r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='a3f0206c9ae1a123b184ac1861ccc5939a9fa2a3', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_delete_3cb63', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_flagenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flagenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM ((SELECT flag_id, environment_id, enabled, variants FROM new_rows EXCEPT SELECT flag_id, environment_id, enabled, variants FROM old_rows) UNION ALL (SELECT flag_id, environment_id, enabled, variants FROM old_rows EXCEPT SELECT flag_id, environment_id, enabled, variants FROM new_rows)) r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='1cf60e15ab84c3ba0d2f6cfd7afe7d5ac23a65e9', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_c3d62', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_flagenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flaglastseen',
                    trigger=pgtrigger.compiler.Trigger(name='lifecycle_stage', sql=pgtrigger.compiler.UpsertTriggerSql(func="\n    INSERT INTO projects_lifecyclestage (flag_id, stage, entered_at)\n    WITH used AS (\n        SELECT r.flag_id, e.type = 'production' AS live, min(r.seen_at) AS seen_at\n          FROM new_rows r JOIN projects_environment e ON e.name = r.environment GROUP BY 1, 2\n    ), reached AS (\n        SELECT flag_id, live, max(seen_at) OVER (PARTITION BY flag_id ORDER BY live) AS seen_at FROM used\n    )\n    SELECT r.flag_id, CASE WHEN r.live THEN 'live' ELSE 'pre-live' END, greatest(r.seen_at, (\n               SELECT max(s.entered_at) FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id))\n      FROM reached r\n     WHERE NOT EXISTS (\n           SELECT FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id\n              AND (s.stage IN ('live', 'completed', 'archived') OR (s.stage = 'pre-live' AND NOT r.live)))\n     ORDER BY 1, 2\n    ON CONFLICT DO NOTHING;\n    RETURN NULL;\n", hash='9a73bb3c4e8b942ce1256789fdc96a00245437b8', level='STATEMENT', operation='INSERT', pgid='pgtrigger_lifecycle_stage_9363b', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_flaglastseen', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='flaglastseen',
                    trigger=pgtrigger.compiler.Trigger(name='lifecycle_stage_again', sql=pgtrigger.compiler.UpsertTriggerSql(func="\n    INSERT INTO projects_lifecyclestage (flag_id, stage, entered_at)\n    WITH used AS (\n        SELECT r.flag_id, e.type = 'production' AS live, min(r.seen_at) AS seen_at\n          FROM new_rows r JOIN projects_environment e ON e.name = r.environment GROUP BY 1, 2\n    ), reached AS (\n        SELECT flag_id, live, max(seen_at) OVER (PARTITION BY flag_id ORDER BY live) AS seen_at FROM used\n    )\n    SELECT r.flag_id, CASE WHEN r.live THEN 'live' ELSE 'pre-live' END, greatest(r.seen_at, (\n               SELECT max(s.entered_at) FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id))\n      FROM reached r\n     WHERE NOT EXISTS (\n           SELECT FROM projects_lifecyclestage s WHERE s.flag_id = r.flag_id\n              AND (s.stage IN ('live', 'completed', 'archived') OR (s.stage = 'pre-live' AND NOT r.live)))\n     ORDER BY 1, 2\n    ON CONFLICT DO NOTHING;\n    RETURN NULL;\n", hash='d9efbd801d01f37bc0bd1b090ff5fed5c45cf067', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_lifecycle_stage_again_ec9e9', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_flaglastseen', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='contextfield',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_contextfieldversion (name, stickiness, project_id, valid_from)\n    SELECT name, stickiness, project_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_contextfieldversion v WHERE v.name = opened.name))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='a5ba8135cc72df2f01546e9c3872b1e010a9087a', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_f4717', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_contextfield', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='contextfield',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed text[];', func="\nclosed := ARRAY(SELECT name FROM old_rows o FULL JOIN new_rows n USING (name)\n                 WHERE (o.name, o.stickiness, o.project_id) IS DISTINCT FROM (n.name, n.stickiness, n.project_id));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_contextfieldversion WHERE name = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_contextfieldversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE name = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_contextfieldversion (name, stickiness, project_id, valid_from)\n    SELECT name, stickiness, project_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_contextfieldversion v WHERE v.name = opened.name))\n      FROM new_rows AS opened\n     WHERE name IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='f8ea21fa14161b9ef085cc80c818826b3d9b3135', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_ba1bf', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_contextfield', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='contextfield',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed text[];', func="\nclosed := ARRAY(SELECT name FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_contextfieldversion WHERE name = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_contextfieldversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE name = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='2d9c8052107153e821e8e5bddec56d66d70cab6b', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_f5d66', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_contextfield', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='projectenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_projectenvironmentversion (id, project_id, environment_id, default_strategy, valid_from)\n    SELECT id, project_id, environment_id, default_strategy, greatest(moment, (SELECT max(v.valid_to) FROM projects_projectenvironmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='dfbae70c1dcf4c2672b855c334bcb79c03a8d2a5', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_8bb1a', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_projectenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='projectenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.project_id, o.environment_id, o.default_strategy) IS DISTINCT FROM (n.id, n.project_id, n.environment_id, n.default_strategy));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_projectenvironmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_projectenvironmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_projectenvironmentversion (id, project_id, environment_id, default_strategy, valid_from)\n    SELECT id, project_id, environment_id, default_strategy, greatest(moment, (SELECT max(v.valid_to) FROM projects_projectenvironmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='0ed1896a877f354f3d891754c47a5e1051343431', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_165a9', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_projectenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='projectenvironment',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_projectenvironmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_projectenvironmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='349670269536b97e7222db985b94e6b7bd8d176d', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_2ad4e', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_projectenvironment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='projectrevision',
                    trigger=pgtrigger.compiler.Trigger(name='outside', sql=pgtrigger.compiler.UpsertTriggerSql(constraint='CONSTRAINT', func="\nIF coalesce(current_setting('flagadmin.audited', true), '') <> 'on' THEN\n    IF NOT EXISTS (SELECT FROM projects_projectrevision r\n                    WHERE r.project_id = coalesce(NEW.project_id, OLD.project_id) AND r.revision <> NEW.revision) THEN\n        INSERT INTO projects_outsidechange (project_id, noticed_at) VALUES (coalesce(NEW.project_id, OLD.project_id), clock_timestamp());\n    END IF;\nEND IF;\nRETURN NULL;\n", hash='242f13dfd0ffba9d7996354e1207ccf8fe4da1b6', operation='UPDATE OR DELETE', pgid='pgtrigger_outside_3034b', table='projects_projectrevision', timing='DEFERRABLE INITIALLY DEFERRED', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='projectrevision',
                    trigger=pgtrigger.compiler.Trigger(name='notify', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_notify('flagadmin_changes', ''); RETURN NULL;", hash='cbd4cf7d275637d0e84ed86a017dc9b2e5acddb5', operation='INSERT OR UPDATE OR DELETE', pgid='pgtrigger_notify_98195', table='projects_projectrevision', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='segment',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_segmentversion (id, name, description, constraints, project_id, valid_from)\n    SELECT id, name, description, constraints, project_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_segmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='655e0c0490d323ad09593c23e3a60151b281e01f', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_1e0f0', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_segment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='segment',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.name, o.description, o.constraints, o.project_id) IS DISTINCT FROM (n.id, n.name, n.description, n.constraints, n.project_id));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_segmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_segmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_segmentversion (id, name, description, constraints, project_id, valid_from)\n    SELECT id, name, description, constraints, project_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_segmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='ed44a817df58ddfa35e78024252f053a804376e9', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_daed8', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_segment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='segment',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_segmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_segmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='9f5dc67d4c86e9bdf6aa9d413895845a91ba1912', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_ec2e3', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_segment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='segment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM ((SELECT id, name, constraints FROM new_rows EXCEPT SELECT id, name, constraints FROM old_rows) UNION ALL (SELECT id, name, constraints FROM old_rows EXCEPT SELECT id, name, constraints FROM new_rows)) r JOIN projects_strategysegment l ON l.segment_id = r.id JOIN projects_strategy s ON s.id = l.strategy_id JOIN projects_flag f ON f.id = s.flag_id) AS f (project, flag); RETURN NULL;', hash='6cda4f9349ae077ccc0f7d3301349db4c504f1a3', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_c252b', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_segment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategy',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_strategyversion (id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants, valid_from)\n    SELECT id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants, greatest(moment, (SELECT max(v.valid_to) FROM projects_strategyversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='65a1b0e62d612c0d8fb5cc8d2888e801113877cd', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_d5002', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_strategy', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategy',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed uuid[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.flag_id, o.environment_id, o.name, o.title, o.disabled, o.sort_order, o.parameters, o.constraints, o.variants) IS DISTINCT FROM (n.id, n.flag_id, n.environment_id, n.name, n.title, n.disabled, n.sort_order, n.parameters, n.constraints, n.variants));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_strategyversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_strategyversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_strategyversion (id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants, valid_from)\n    SELECT id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants, greatest(moment, (SELECT max(v.valid_to) FROM projects_strategyversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='e364acbc6c048dba742caccb980208c8fc515c0d', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_040a8', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_strategy', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategy',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed uuid[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_strategyversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_strategyversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='8d22870dbed58c5b01ce888668bc9f7b0fe1235a', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_fc368', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_strategy', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategy',
                    trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM new_rows r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='428343684a595c08e959eea03b47fe9446f21744', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_1e5ff', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_strategy', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategy',
                    trigger=pgtrigger.compiler.Trigger(name='revision_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM old_rows r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='774d7331bb55b54f7cb7e53c335e2be2c6aa2ca3', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_delete_f5965', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_strategy', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategy',
                    trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM ((SELECT id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants FROM new_rows EXCEPT SELECT id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants FROM old_rows) UNION ALL (SELECT id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants FROM old_rows EXCEPT SELECT id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants FROM new_rows)) r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='18151064141cf9d1c823798733c31f1a6d48c4c7', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_34c80', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_strategy', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategysegment',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_strategysegmentversion (id, strategy_id, segment_id, valid_from)\n    SELECT id, strategy_id, segment_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_strategysegmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='e445f22266f01ceaa1dbf8f4aa3c089358362824', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_8f703', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_strategysegment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategysegment',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.strategy_id, o.segment_id) IS DISTINCT FROM (n.id, n.strategy_id, n.segment_id));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_strategysegmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_strategysegmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_strategysegmentversion (id, strategy_id, segment_id, valid_from)\n    SELECT id, strategy_id, segment_id, greatest(moment, (SELECT max(v.valid_to) FROM projects_strategysegmentversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='30c61ce5cab6d65f183da33f525dd475cb3af68c', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_e1b0b', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_strategysegment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategysegment',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_strategysegmentversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_strategysegmentversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='bf1d87067a232aa3cc3156516aae51450a5ba634', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_2de21', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_strategysegment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategysegment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM new_rows r JOIN projects_strategy s ON s.id = r.strategy_id JOIN projects_flag f ON f.id = s.flag_id) AS f (project, flag); RETURN NULL;', hash='59642fcf735e0e2d5168e5264a8e0e95bdeeb06a', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_d63f8', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_strategysegment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategysegment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM old_rows r JOIN projects_strategy s ON s.id = r.strategy_id JOIN projects_flag f ON f.id = s.flag_id) AS f (project, flag); RETURN NULL;', hash='0fd066a9676c5ac8ffb5cc53f7d4db879647ad66', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_delete_8e4f4', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_strategysegment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='strategysegment',
                    trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM ((SELECT strategy_id, segment_id FROM new_rows EXCEPT SELECT strategy_id, segment_id FROM old_rows) UNION ALL (SELECT strategy_id, segment_id FROM old_rows EXCEPT SELECT strategy_id, segment_id FROM new_rows)) r JOIN projects_strategy s ON s.id = r.strategy_id JOIN projects_flag f ON f.id = s.flag_id) AS f (project, flag); RETURN NULL;', hash='0624bfdfa420dc7cc33f7e902ccf7626c93974e0', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_7c602', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_strategysegment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dependency',
                    trigger=pgtrigger.compiler.Trigger(name='version_insert', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz := audit_moment();', func='\n    INSERT INTO projects_dependencyversion (id, flag_id, parent_id, enabled, variants, valid_from)\n    SELECT id, flag_id, parent_id, enabled, variants, greatest(moment, (SELECT max(v.valid_to) FROM projects_dependencyversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened;\nRETURN NULL;', hash='41c15070d88479a5c404ab7e62a9d5a4bf17508a', level='STATEMENT', operation='INSERT', pgid='pgtrigger_version_insert_e1985', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_dependency', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dependency',
                    trigger=pgtrigger.compiler.Trigger(name='version_update', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows o FULL JOIN new_rows n USING (id)\n                 WHERE (o.id, o.flag_id, o.parent_id, o.enabled, o.variants) IS DISTINCT FROM (n.id, n.flag_id, n.parent_id, n.enabled, n.variants));\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_dependencyversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_dependencyversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\n    INSERT INTO projects_dependencyversion (id, flag_id, parent_id, enabled, variants, valid_from)\n    SELECT id, flag_id, parent_id, enabled, variants, greatest(moment, (SELECT max(v.valid_to) FROM projects_dependencyversion v WHERE v.id = opened.id))\n      FROM new_rows AS opened\n     WHERE id IN (SELECT unnest(closed));\nEND IF;\nRETURN NULL;", hash='6ba66b1d504aabc984bf0e8a027d7c5fddc915bc', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_version_update_9dea8', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_dependency', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dependency',
                    trigger=pgtrigger.compiler.Trigger(name='version_delete', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE moment timestamptz; closed bigint[];', func="\nclosed := ARRAY(SELECT id FROM old_rows);\nIF cardinality(closed) > 0 THEN\n    moment := audit_moment();\n    DELETE FROM projects_dependencyversion WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00' AND valid_from = moment;\n    UPDATE projects_dependencyversion SET valid_to = greatest(moment, valid_from + interval '1 microsecond')\n     WHERE id = ANY(closed) AND valid_to = '9999-12-31 23:59:59.999999+00:00';\nEND IF;\nRETURN NULL;", hash='41a1d5b55eca9951219c6c1381b3da3eed99e1e5', level='STATEMENT', operation='DELETE', pgid='pgtrigger_version_delete_87253', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_dependency', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dependency',
                    trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM new_rows r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='193bf191614713d4348d368ffce086a738f016bb', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_73296', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_dependency', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dependency',
                    trigger=pgtrigger.compiler.Trigger(name='revision_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM old_rows r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='874510f8861c0d681d42f5c4ac27186e6c2d58fb', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_delete_53c23', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_dependency', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dependency',
                    trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM ((SELECT flag_id, parent_id, enabled, variants FROM new_rows EXCEPT SELECT flag_id, parent_id, enabled, variants FROM old_rows) UNION ALL (SELECT flag_id, parent_id, enabled, variants FROM old_rows EXCEPT SELECT flag_id, parent_id, enabled, variants FROM new_rows)) r JOIN projects_flag f ON f.id = r.flag_id) AS f (project, flag); RETURN NULL;', hash='6e98025408cfb622015af4daab49ee9d5daffc81', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_7c600', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_dependency', when='AFTER')),
                ),
                migrations.RunSQL(ROOM, migrations.RunSQL.noop),
                migrations.RunPython(clear_owners, migrations.RunPython.noop),
            ],
        ),
    ]
