"""Tokens that wait for an environment or for projects to be created.

Until then they give no access. Code that creates an environment or project calls `activate_tokens` in the same
transaction.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.statements import execute
from flagadmin.core.wording import choices
from groups.access import Caller
from groups.models import ApiToken
from projects.models import Environment, Project
from projects.tokens.actions import document, give_scope, record_token

EVERY = "*"
# An arbitrary advisory lock number. It keeps a token from being stored as pending while its environment or
# project is being created.
_LOCK = 5_172_031


@dataclass(frozen=True, slots=True)
class Places:
    """The names of all environments, and the ids of all projects that are not archived."""

    environments: frozenset[str]
    projects: frozenset[str]

    @classmethod
    def read(cls) -> "Places":
        projects = Project.objects.active().values_list("id", flat=True)
        return cls(frozenset(Environment.objects.values_list("name", flat=True)), frozenset(projects))

    def describe_missing(self, scope: dict[str, Any]) -> str:
        """The missing parts of this scope, such as ``environment qa and project pay``; "" if all exist."""
        parts = []
        if scope["environment"] not in self.environments | {EVERY}:
            parts.append(f"environment {scope['environment']}")
        if not scope["projects"]:
            parts.append("the names of its projects, which its secret does not have")
        elif absent := set(scope["projects"]) - self.projects - {EVERY}:
            parts.append(f"{'project' if len(absent) == 1 else 'projects'} {choices(absent)}")
        return " and ".join(parts)


def describe_missing(tokens: Iterable[ApiToken]) -> dict[int, str]:
    """The missing parts of each pending token's scope, by its id. No query if none is pending, otherwise two."""
    scopes = {token.pk: token.pending_scope for token in tokens if token.pending_scope is not None}
    if not scopes:
        return {}
    places = Places.read()
    return {pk: places.describe_missing(scope) or "the next start" for pk, scope in scopes.items()}


def lock_pending_tokens() -> None:
    """Holds the lock until the end of the transaction."""
    execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def activate_tokens(*, caller: Caller) -> None:
    """Gives pending tokens their scope if all of it exists now, and records the events."""
    lock_pending_tokens()
    pending = list(ApiToken.objects.select_for_update().filter(pending_scope__isnull=False).order_by("id"))
    if not pending:
        return
    places = Places.read()
    for token in pending:
        scope = token.pending_scope
        if scope is None or places.describe_missing(scope):
            continue
        before = document(token, ())
        give_scope(token, scope)
        projects = [] if token.all_projects else scope["projects"]
        record_token(EventType.API_TOKEN_UPDATED, projects, before, document(token, projects), caller=caller)
