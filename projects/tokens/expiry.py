"""Announces API tokens that will expire, as audit events, which integrations send on by e-mail, webhook or chat."""

from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from groups.access import Caller
from groups.models import ApiToken
from projects.tokens.access import list_scope_projects
from projects.tokens.actions import document, record_token

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
