from django.db import migrations

TOUCH_SQL = """
CREATE SEQUENCE IF NOT EXISTS projects_revision_seq;
CREATE OR REPLACE FUNCTION projects_touch(ids text[]) RETURNS void LANGUAGE sql AS $$
    -- In id order, so that two writers never wait for each other in a circle. The number is drawn anew once
    -- the row is locked, so that the numbers of a project only grow.
    INSERT INTO projects_projectrevision (project_id, revision)
    SELECT id, nextval('projects_revision_seq')
      FROM (SELECT DISTINCT unnest(ids) AS id ORDER BY 1) AS touched WHERE id IS NOT NULL
    ON CONFLICT (project_id) DO UPDATE SET revision = nextval('projects_revision_seq')
$$;
"""

UNTOUCH_SQL = "DROP FUNCTION projects_touch(text[]); DROP SEQUENCE projects_revision_seq;"


class Migration(migrations.Migration):
    dependencies = [("projects", "0001_initial")]
    operations = [migrations.RunSQL(TOUCH_SQL, UNTOUCH_SQL)]
