"""Projects enforce what saved contexts of no project expect, if who saved them last may change the flags there.

Others' expectations are only reported from now on.
"""

from django.db import migrations

SQL = """
WITH held AS (
    SELECT id AS user_id, root_role_id AS role_id, NULL::text AS project_id FROM groups_user
    UNION ALL
    SELECT m.user_id, g.root_role_id, NULL FROM groups_group g JOIN groups_groupmembership m ON m.group_id = g.id
    UNION ALL
    SELECT user_id, role_id, project_id FROM groups_grant WHERE user_id IS NOT NULL
    UNION ALL
    SELECT m.user_id, t.role_id, t.project_id
      FROM groups_grant t JOIN groups_groupmembership m ON m.group_id = t.group_id
), may AS (
    -- As the server decides it: an admin everywhere, project permissions of a root role in the default project.
    SELECT u.username, p.permission = 'ADMIN' AS everywhere, coalesce(held.project_id, 'default') AS project_id
      FROM held JOIN groups_user u ON u.id = held.user_id JOIN groups_rolepermission p ON p.role_id = held.role_id
     WHERE u.is_active
       AND (p.permission = 'UPDATE_FEATURE' OR (p.permission = 'ADMIN' AND held.project_id IS NULL))
), enforced AS (
    SELECT c.id, jsonb_object_agg(f.name, f.project_id) AS projects
      FROM playground_savedcontext c
     CROSS JOIN LATERAL jsonb_array_elements(c.expectations) e
      JOIN projects_flag f ON f.name = e ->> 'flag'
     WHERE c.project_id IS NULL
       AND EXISTS (
           SELECT FROM may
            WHERE may.username = c.updated_by AND (may.everywhere OR may.project_id = f.project_id)
       )
     GROUP BY c.id
)
UPDATE playground_savedcontext c SET enforced_in = enforced.projects FROM enforced WHERE enforced.id = c.id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("groups", "0008_membership_by_provider"),
        ("playground", "0005_enforced_in"),
        ("projects", "0019_sdk_versions"),
    ]
    operations = [migrations.RunSQL(SQL, migrations.RunSQL.noop)]
