"""The scope of an SDK token: the environment and projects that determine its flags."""

import hashlib
from dataclasses import dataclass

import orjson
from django.db import connections
from django.utils.functional import cached_property

from groups.models import ApiToken
from sdk.token_scope import TokenScope
from sdk.watcher.watcher import token_scope

_ALL = "SELECT project_id, revision FROM projects_projectrevision"
_THESE = f"{_ALL} WHERE project_id = ANY(%s)"


@dataclass(frozen=True)
class Scope:
    """Tokens of the same scope get the same flags. ``projects`` is None for all, else sorted ids."""

    environment: str
    projects: tuple[str, ...] | None

    @classmethod
    def of(cls, token_scope: TokenScope) -> "Scope":
        return cls(token_scope.environment, None if token_scope.all_projects else token_scope.projects)

    @cached_property
    def key(self) -> str:
        """A hash."""
        return hashlib.sha256(orjson.dumps([self.environment, self.projects])).hexdigest()

    def read_revisions(self, *, using: str) -> dict[str, int]:
        """The revisions of the projects, by id."""
        with connections[using].cursor() as cursor:
            cursor.execute(*((_ALL,) if self.projects is None else (_THESE, [list(self.projects)])))
            return dict(cursor.fetchall())


def read_scope(token: ApiToken, *, using: str) -> tuple[Scope, dict[str, int]]:
    """The scope of a token, and the revisions of its projects by id. At most one SQL statement."""
    readable = token_scope(token, using=using)
    return Scope.of(readable), readable.revisions
