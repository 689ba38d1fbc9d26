"""Counts the members of projects: users and service accounts with a role, directly or through a group."""

from collections.abc import Sequence
from datetime import datetime

from flagadmin.core.db.statements import fetch_rows
from projects.models import Project

# Since when, with a row for each way to a role.
_HOLDERS = """
SELECT project_id, user_id, created_at AS since FROM groups_grant
 WHERE user_id IS NOT NULL AND project_id = ANY(%(projects)s)
UNION ALL
SELECT g.project_id, m.user_id, greatest(g.created_at, m.joined_at)
  FROM groups_grant g JOIN groups_groupmembership m ON m.group_id = g.group_id
 WHERE g.project_id = ANY(%(projects)s)
"""


def count_members(ids: Sequence[str]) -> dict[str, int]:
    """Members by project, each counted once. Projects without members have no entry. One query."""
    statement = f"SELECT project_id, count(DISTINCT user_id) FROM ({_HOLDERS}) AS holders GROUP BY 1"  # noqa: S608 - constants
    return dict(fetch_rows(statement, {"projects": list(ids)}))


def count_new_members(project: Project, since: datetime) -> int:
    """Members whose first role in the project is not older than ``since``. One query."""
    statement = f"""
        SELECT count(*) FROM (
            SELECT user_id FROM ({_HOLDERS}) AS holders GROUP BY user_id HAVING min(since) >= %(since)s) AS new
    """  # noqa: S608 - constants
    [(number,)] = fetch_rows(statement, {"projects": [project.pk], "since": since})
    return int(number)
