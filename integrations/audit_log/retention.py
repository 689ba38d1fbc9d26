"""Removes old events that only say who did what to accounts and the like. The states of flags, projects and segments
stay known: their history, reverts and the past are made of their events, which are never removed."""

import logging
from collections import Counter
from datetime import timedelta

import pgtrigger
from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import MaintenanceMode
from groups.access import Caller
from integrations.deliveries.outbox import read_settled_id
from integrations.models import Delivery, WrittenLog

log = logging.getLogger("flagadmin.integrations")

MAX_REMOVED = 20_000  # events at a time
_ABOUT_ACCOUNTS = ("user-", "service-account-", "group-", "api-token-", "pat-", "public-signup-")
REMOVABLE = [kind.value for kind in E if kind.value.startswith(_ABOUT_ACCOUNTS)] + [
    E.FEATURE_FAVORITED,
    E.FEATURE_UNFAVORITED,
    E.PROJECT_FAVORITED,
    E.PROJECT_UNFAVORITED,
    E.FEATURES_EXPORTED,
    E.ADDON_CREATED,
    E.ADDON_UPDATED,
    E.ADDON_DELETED,
]


def prune() -> int:
    """Removes what is older than FLAGADMIN_AUDIT_DAYS. Returns the number of removed events."""
    if not settings.AUDIT_DAYS:
        return 0
    try:
        removed = _remove()
    except MaintenanceMode:
        return 0
    if removed:
        log.info("Removed %s events that were older than %s days.", removed, settings.AUDIT_DAYS)
    return removed


@transactional
def _remove() -> int:
    """An event says how many of which type were removed."""
    oldest = timezone.now() - timedelta(days=settings.AUDIT_DAYS)
    events = AuditEvent.objects.filter(
        ~Exists(Delivery.objects.filter(event_id=OuterRef("pk"))),
        type__in=REMOVABLE,
        created_at__lt=oldest,
        pk__lte=_find_handed_on_id(),
    )
    rows = list(events.order_by("pk").values_list("pk", "type")[:MAX_REMOVED])
    if not rows:
        return 0
    with pgtrigger.ignore("audit.AuditEvent:append_only"):
        AuditEvent.objects.filter(pk__in=[pk for pk, _ in rows]).delete()
    counts = Counter(kind for _, kind in rows)
    after = {"olderThan": oldest.isoformat(), "removed": dict(sorted(counts.items()))}
    record(Event(type=E.EVENTS_PRUNED, subject=f"{len(rows):,}", after=after), actor=Caller.system())
    return len(rows)


def _find_handed_on_id() -> int:
    """Up to which id nothing is still to be relayed or written elsewhere."""
    if not settings.AUDIT_LOG:
        return read_settled_id()
    written = WrittenLog.objects.first()
    return written.written_id if written else 0
