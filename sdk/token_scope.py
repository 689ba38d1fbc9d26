"""The projects and environment that an SDK token can read, and their revision.

The revision is the sum of the projects' revisions. Each of these only grows, so every change changes the sum.
Their maximum may stay the same, because revisions are assigned before they are committed.
"""

from dataclasses import dataclass

from django.db import connections

from groups.models import ApiToken

_ALL = """
SELECT project_id, revision FROM projects_projectrevision ORDER BY project_id COLLATE "C"
"""
_OF_SCOPES = """
SELECT project_id, revision
  FROM projects_projectrevision JOIN groups_apitokenproject t USING (project_id)
 WHERE t.token_id = %s
 ORDER BY project_id COLLATE "C"
"""


@dataclass(frozen=True, slots=True)
class TokenScope:
    """``revisions`` by project, in the order of the projects' ids (code points)."""

    environment: str
    revisions: dict[str, int]
    all_projects: bool

    @property
    def projects(self) -> tuple[str, ...]:
        return tuple(self.revisions)

    @property
    def revision(self) -> int:
        return sum(self.revisions.values())


def read_token_scope(token: ApiToken, *, using: str) -> TokenScope:
    """Reads the projects, environment and revision of a token in one SQL statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_ALL if token.all_projects else _OF_SCOPES, None if token.all_projects else [token.pk])
        return TokenScope(str(token.environment_id), dict(cursor.fetchall()), token.all_projects)
