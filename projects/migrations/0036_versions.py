"""Versions of what decides answers. Those of the present begin now; the audit log still tells what was before."""

import datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


COLUMNS = {
    "flag": "id, name, project_id, type, description, stale, impression_data, created_at, archived_at, owner_user_id, owner_group_id",
    "flagenvironment": "id, flag_id, environment_id, enabled, variants",
    "strategy": "id, flag_id, environment_id, name, title, disabled, sort_order, parameters, constraints, variants",
    "strategysegment": "id, strategy_id, segment_id",
    "dependency": "id, flag_id, parent_id, enabled, variants",
    "segment": "id, name, description, constraints, project_id",
    "projectenvironment": "id, project_id, environment_id, default_strategy",
    "contextfield": "name, stickiness, project_id",
}
# Nobody writes these tables meanwhile: whoever creates a trigger holds a lock until the end. Nothing was before in a
# new installation.
PRESENT = [
    *(
        f"INSERT INTO projects_{table}version ({columns}, valid_from) SELECT {columns}, '0001-01-01 00:00:00+00:00' FROM projects_{table}"
        for table, columns in COLUMNS.items()
    ),
    "INSERT INTO projects_versionssince (since, kept_since) SELECT audit_moment(), audit_moment() "
    "WHERE EXISTS (SELECT FROM projects_flag) OR EXISTS (SELECT FROM audit_auditevent)",
]


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0035_token_of_a_relay'),
        ('audit', '0004_one_moment_a_transaction'),
    ]

    operations = [
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
        ),
        migrations.CreateModel(
            name='VersionsSince',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('since', models.DateTimeField()),
                ('kept_since', models.DateTimeField()),
            ],
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
        migrations.AddIndex(
            model_name='dependencyversion',
            index=models.Index(fields=['flag_id', 'valid_to'], name='dependency_version_flag_id'),
        ),
        migrations.AddIndex(
            model_name='dependencyversion',
            index=models.Index(fields=['valid_from'], name='dependency_version_began'),
        ),
        migrations.AddIndex(
            model_name='dependencyversion',
            index=models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='dependency_version_ended'),
        ),
        migrations.AddIndex(
            model_name='flagenvironmentversion',
            index=models.Index(fields=['flag_id', 'environment_id', 'valid_to'], name='place_version_flag_id'),
        ),
        migrations.AddIndex(
            model_name='flagenvironmentversion',
            index=models.Index(fields=['valid_from'], name='place_version_began'),
        ),
        migrations.AddIndex(
            model_name='flagenvironmentversion',
            index=models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='place_version_ended'),
        ),
        migrations.AddIndex(
            model_name='flagversion',
            index=models.Index(fields=['name', 'valid_to'], name='flag_version_name'),
        ),
        migrations.AddIndex(
            model_name='flagversion',
            index=models.Index(fields=['project_id', 'valid_to'], name='flag_version_project_id'),
        ),
        migrations.AddIndex(
            model_name='flagversion',
            index=models.Index(fields=['valid_from'], name='flag_version_began'),
        ),
        migrations.AddIndex(
            model_name='flagversion',
            index=models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='flag_version_ended'),
        ),
        migrations.AddIndex(
            model_name='projectenvironmentversion',
            index=models.Index(fields=['project_id', 'valid_to'], name='use_version_project_id'),
        ),
        migrations.AddIndex(
            model_name='segmentversion',
            index=models.Index(fields=['valid_from'], name='segment_version_began'),
        ),
        migrations.AddIndex(
            model_name='segmentversion',
            index=models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='segment_version_ended'),
        ),
        migrations.AddIndex(
            model_name='strategysegmentversion',
            index=models.Index(fields=['strategy_id', 'valid_to'], name='link_version_strategy_id'),
        ),
        migrations.AddIndex(
            model_name='strategysegmentversion',
            index=models.Index(fields=['valid_from'], name='link_version_began'),
        ),
        migrations.AddIndex(
            model_name='strategysegmentversion',
            index=models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='link_version_ended'),
        ),
        migrations.AddIndex(
            model_name='strategyversion',
            index=models.Index(fields=['flag_id', 'environment_id', 'valid_to'], name='strategy_version_flag_id'),
        ),
        migrations.AddIndex(
            model_name='strategyversion',
            index=models.Index(fields=['valid_from'], name='strategy_version_began'),
        ),
        migrations.AddIndex(
            model_name='strategyversion',
            index=models.Index(condition=models.Q(('valid_to__lt', datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.timezone.utc))), fields=['valid_to'], name='strategy_version_ended'),
        ),
        migrations.RunSQL(PRESENT, migrations.RunSQL.noop),
    ]
