"""In which projects a role is held, and by how many."""

from typing import Any

from django.db import connection

# Service accounts are few: users are what is left of the grants without them, so that only the index of grants is
# read in full.
_USAGE = """
SELECT g.project_id, count(g.user_id) - count(s.id), count(s.id), count(g.group_id)
  FROM groups_grant g
  LEFT JOIN (SELECT id FROM groups_user WHERE is_service) AS s ON s.id = g.user_id
 WHERE g.role_id = %s
 GROUP BY g.project_id
 ORDER BY g.project_id COLLATE "C"
"""


def role_usage(role_id: int) -> list[dict[str, Any]]:
    """Direct grants on projects: a group counts once whatever its members. One statement, by project."""
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, [role_id])
        return [
            {
                "project": project,
                "role": role_id,
                "userCount": users,
                "serviceAccountCount": services,
                "groupCount": groups,
            }
            for project, users, services, groups in cursor.fetchall()
        ]
