"""Tokens that wait for an environment or for projects to be created.

Until then they give no access. Code that creates an environment or project calls `activate_tokens` in the same
transaction.

Announces API tokens that will expire, as audit events, which integrations send on by e-mail, webhook or
chat.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.errors import choices
from groups.access import Caller
from groups.models import ApiToken
from projects.models import Environment, Project
from projects.tokens.access import list_scope_projects
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


ANNOUNCED_DAYS = (0, 3, 14)  # whole days before the expiry, the nearest first


@transactional
def announce_expiring_tokens() -> None:
    """Records an event for each token that has come closer to its expiry than 15, 4 and 1 day since the last call.

    The events have ``daysLeft`` 14, 3 and 0. A token whose expiry changes is announced again.
    """
    for token, announcement in _find_announcements():
        projects = sorted(list_scope_projects(token))
        record_token(EventType.API_TOKEN_EXPIRING, projects, None, announcement, caller=Caller.system())


def _find_announcements() -> Iterator[tuple[ApiToken, Document]]:
    now = timezone.now()
    soon = now + timedelta(days=max(ANNOUNCED_DAYS) + 1)
    tokens = ApiToken.objects.filter(expires_at__gt=now, expires_at__lt=soon).exclude(
        kind=ApiToken.Kind.PERSONAL
    )
    events = AuditEvent.objects.filter(type=EventType.API_TOKEN_EXPIRING, created_at__gt=now - (soon - now))
    announced = set(events.values_list("after__id", "after__expiresAt", "after__daysLeft"))
    for token in tokens.order_by("pk").prefetch_related("scopes"):
        left = (token.expires_at - now).days  # type: ignore[operator]  # as filtered
        limit = next(days for days in ANNOUNCED_DAYS if left <= days)
        recorded = document(token, list_scope_projects(token))
        if (token.pk, recorded["expiresAt"], limit) not in announced:
            yield token, recorded | {"daysLeft": limit}
