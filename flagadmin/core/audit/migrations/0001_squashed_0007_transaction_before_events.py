import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from flagadmin.core.db.at_once import AtOnce

# The first call in a transaction takes the time, and the others repeat it. Its locks have been taken by then.
MOMENT = """
CREATE FUNCTION audit_moment() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    moment timestamptz := nullif(current_setting('flagadmin.moment', true), '');
BEGIN
    IF moment IS NULL THEN
        moment := clock_timestamp();
        PERFORM set_config('flagadmin.moment', moment::text, true);
    END IF;
    RETURN moment;
END $$
"""


class Migration(migrations.Migration):

    replaces = [
        ('audit', '0001_initial'),
        ('audit', '0002_events_of_a_request'),
        ('audit', '0003_what_the_past_needs'),
        ('audit', '0004_one_moment_a_transaction'),
        ('audit', '0005_newest_first'),
        ('audit', '0006_comments'),
        ('audit', '0007_transaction_before_events'),
    ]

    initial = True

    dependencies = [
    ]

    operations = [
        AtOnce(
            operations=[
                migrations.RunSQL(MOMENT, 'DROP FUNCTION audit_moment()'),
                migrations.CreateModel(
                    name='AuditEvent',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('type', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(db_default=models.Func(function='audit_moment', output_field=models.DateTimeField()), editable=False, help_text='The same for all events of a transaction. See docs/decisions/past.md.')),
                        ('actor_id', models.BigIntegerField(blank=True, null=True)),
                        ('actor_name', models.CharField(max_length=255)),
                        ('project', models.TextField(blank=True, null=True)),
                        ('environment', models.TextField(blank=True, null=True)),
                        ('feature', models.TextField(blank=True, null=True)),
                        ('subject', models.TextField(blank=True, help_text='Name of a subject that is no flag.', null=True)),
                        ('before', models.JSONField(blank=True, null=True)),
                        ('after', models.JSONField(blank=True, null=True)),
                        ('request_id', models.CharField(blank=True, max_length=64)),
                        ('earlier', models.JSONField(blank=True, help_text='What the past needs besides `before`. See projects.history.frozen.rewind.', null=True)),
                        ('comment', models.TextField(blank=True, db_default='', help_text='Why, in the words of the person.')),
                    ],
                    options={
                        'ordering': ['-created_at', '-id'],
                        'indexes': [models.Index(condition=models.Q(('request_id', ''), _negated=True), fields=['request_id', '-id'], name='audit_request'), models.Index(fields=['project', '-created_at', '-id'], name='audit_project_time'), models.Index(fields=['feature', '-created_at', '-id'], name='audit_feature_time'), models.Index(fields=['type', '-created_at', '-id'], name='audit_type_time'), models.Index(fields=['actor_id', '-created_at', '-id'], name='audit_actor_time'), models.Index(fields=['-created_at', '-id'], name='audit_time')],
                    },
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='auditevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='0450288fcb55201b346da4e2d56d2293ba7aac03', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_00dfa', table='audit_auditevent', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='auditevent',
                    trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=pgtrigger.compiler.UpsertTriggerSql(func="IF current_database() NOT LIKE 'test%' THEN RAISE EXCEPTION 'audit events are append-only'; END IF; RETURN NULL;", hash='1843b4c69d715e5cb66ade91bb092b46409f28fd', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_c220f', table='audit_auditevent', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='auditevent',
                    trigger=pgtrigger.compiler.Trigger(name='audited', sql=pgtrigger.compiler.UpsertTriggerSql(func="PERFORM pg_current_xact_id(), set_config('flagadmin.audited', 'on', true); RETURN NULL;", hash='522186e54a0b5e105b8709186b46604c2eac1b92', level='STATEMENT', operation='INSERT', pgid='pgtrigger_audited_7567f', table='audit_auditevent', when='BEFORE')),
                ),
            ],
        ),
    ]
