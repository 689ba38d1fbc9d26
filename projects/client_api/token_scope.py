"""What an SDK key reaches at this moment: projects, environment, and one number that grows with every change.

The number is the sum of the projects' revisions. Each of them only grows, so for the same projects no two states
have the same sum; a maximum would not do, because numbers are drawn before they are committed.
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
class Scope:
    environment: str
    projects: tuple[str, ...]
    all_projects: bool
    revision: int


def sdk_database() -> str:
    """The replica where there is one: the one place where an answer may be as old as the replica is behind."""
    return "replica" if "replica" in connections else DEFAULT_DB_ALIAS


def read_scope(token: ApiToken, *, using: str) -> Scope:
    """One small statement."""
    with connections[using].cursor() as cursor:
        cursor.execute(_ALL if token.all_projects else _OF_SCOPES, None if token.all_projects else [token.pk])
        revision, projects = cursor.fetchone()
    return Scope(str(token.environment_id), tuple(projects), token.all_projects, int(revision))
