"""Stores which flags each revision of a project changed, so that readers of an earlier one read only those again."""

import django.contrib.postgres.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

TOUCH = """
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
TOUCH_BEFORE = """
CREATE FUNCTION projects_touch(ids text[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO projects_projectrevision (project_id, revision)
    SELECT id, nextval('projects_revision_seq')
      FROM (SELECT DISTINCT unnest(ids) AS id ORDER BY 1) AS touched WHERE id IS NOT NULL
    ON CONFLICT (project_id) DO UPDATE SET revision = nextval('projects_revision_seq')
$$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0036_versions'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChangedFlags',
            fields=[
                ('pk', models.CompositePrimaryKey('project_id', 'revision', blank=True, editable=False, primary_key=True, serialize=False)),
                ('project_id', models.CharField(max_length=100)),
                ('revision', models.BigIntegerField()),
                ('names', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None)),
            ],
        ),
        migrations.RunSQL(TOUCH, 'DROP FUNCTION projects_touch(text[], text[])'),
        pgtrigger.migrations.RemoveTrigger(
            model_name='dependency',
            name='revision_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='dependency',
            name='revision_delete',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='dependency',
            name='revision_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='flag',
            name='revision_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='flag',
            name='revision_delete',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='flag',
            name='revision_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='flagenvironment',
            name='revision_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='flagenvironment',
            name='revision_delete',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='flagenvironment',
            name='revision_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='project',
            name='revision_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='project',
            name='revision_forget',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='segment',
            name='revision_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='strategy',
            name='revision_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='strategy',
            name='revision_delete',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='strategy',
            name='revision_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='strategysegment',
            name='revision_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='strategysegment',
            name='revision_delete',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='strategysegment',
            name='revision_update',
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
            model_name='project',
            trigger=pgtrigger.compiler.Trigger(name='revision_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT r.id, NULL FROM new_rows r) AS f (project, flag); RETURN NULL;', hash='fb40a1283014904d04d88aba12a026b8f2ddd5e3', level='STATEMENT', operation='INSERT', pgid='pgtrigger_revision_insert_f83c6', referencing='REFERENCING NEW TABLE AS new_rows ', table='projects_project', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='project',
            trigger=pgtrigger.compiler.Trigger(name='revision_forget', sql=pgtrigger.compiler.UpsertTriggerSql(func='DELETE FROM projects_projectrevision WHERE project_id IN (SELECT id FROM old_rows); DELETE FROM projects_changedflags WHERE project_id IN (SELECT id FROM old_rows); RETURN NULL;', hash='98b9fd10a0d48a42f49ac3e2993770283470e29d', level='STATEMENT', operation='DELETE', pgid='pgtrigger_revision_forget_344a0', referencing='REFERENCING OLD TABLE AS old_rows ', table='projects_project', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='segment',
            trigger=pgtrigger.compiler.Trigger(name='revision_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='PERFORM projects_touch(array_agg(project), array_agg(flag)) FROM (SELECT f.project_id, f.name FROM ((SELECT id, name, constraints FROM new_rows EXCEPT SELECT id, name, constraints FROM old_rows) UNION ALL (SELECT id, name, constraints FROM old_rows EXCEPT SELECT id, name, constraints FROM new_rows)) r JOIN projects_strategysegment l ON l.segment_id = r.id JOIN projects_strategy s ON s.id = l.strategy_id JOIN projects_flag f ON f.id = s.flag_id) AS f (project, flag); RETURN NULL;', hash='6cda4f9349ae077ccc0f7d3301349db4c504f1a3', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_revision_update_c252b', referencing='REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ', table='projects_segment', when='AFTER')),
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
        migrations.RunSQL('DROP FUNCTION projects_touch(text[])', TOUCH_BEFORE),
    ]
