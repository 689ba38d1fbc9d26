"""The projects and environment that an SDK token can read, and their revision.

The revision is the sum of the projects' revisions. Each of these only grows, so every change changes the sum.
Their maximum may stay the same, because revisions are assigned before they are committed.
"""

from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS, connections

from groups.models import ApiToken

_ALL = """
SELECT coalesce(sum(revision), 0), coalesce(array_agg(project_id ORDER BY project_id COLLATE "C"), '{}')
  FROM projects_projectrevision
"""
_OF_SCOPES = """
SELECT coalesce(sum(r.revision), 0), coalesce(array_agg(r.project_id ORDER BY r.project_id COLLATE "C"), '{}')
  FROM projects_projectrevision r JOIN groups_apitokenproject t USING (project_id) WHERE t.token_id = %s
"""


@dataclass(frozen=True, slots=True)
class TokenScope:
    environment: str
    projects: tuple[str, ...]
    all_projects: bool
    revision: int


def sdk_database() -> str:
    """The replica if there is one. Only SDK responses may lag behind the primary database."""
    return "replica" if "replica" in connections else DEFAULT_DB_ALIAS


def read_token_scope(token: ApiToken, *, using: str) -> TokenScope:
    """Reads the projects, environment and revision of a token in one SQL statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_ALL if token.all_projects else _OF_SCOPES, None if token.all_projects else [token.pk])
        revision, projects = cursor.fetchone()
    return TokenScope(str(token.environment_id), tuple(projects), token.all_projects, int(revision))
