from django.db import migrations, models

# The first call in a transaction takes the time, and the others repeat it. Its locks have been taken by then.
CREATE = """
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

    dependencies = [
        ('audit', '0003_what_the_past_needs'),
    ]

    operations = [
        migrations.RunSQL(CREATE, 'DROP FUNCTION audit_moment()'),
        migrations.AlterField(
            model_name='auditevent',
            name='created_at',
            field=models.DateTimeField(db_default=models.Func(function='audit_moment', output_field=models.DateTimeField()), editable=False, help_text='The same for all events of a transaction. See docs/decisions/past.md.'),
        ),
    ]
