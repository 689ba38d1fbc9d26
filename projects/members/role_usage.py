"""Counts the users, service accounts and groups that have a role, by project."""

from typing import Any

from flagadmin.core.db.statements import fetch_rows

# There are few service accounts, so users are counted as all grants minus those of service accounts. Only the
# index of grants is then read in full.
_USAGE = """
SELECT g.project_id, count(g.user_id) - count(s.id), count(s.id), count(g.group_id)
  FROM groups_grant g
  LEFT JOIN (SELECT id FROM groups_user WHERE is_service) AS s ON s.id = g.user_id
 WHERE g.role_id = %s
 GROUP BY g.project_id
 ORDER BY g.project_id COLLATE "C"
"""


def read_role_usage(role_id: int) -> list[dict[str, Any]]:
    """Direct grants by project; a group counts once, whatever its size. One query."""
    return [
        {
            "project": project,
            "role": role_id,
            "userCount": users,
            "serviceAccountCount": services,
            "groupCount": groups,
        }
        for project, users, services, groups in fetch_rows(_USAGE, [role_id])
    ]
