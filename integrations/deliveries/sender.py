"""Sends deliveries: one after the other for each integration, and all integrations at the same time.

Every server may send. One claims an integration by setting `claimed_until` to a time by which it will be done; if it is
killed, another one goes on then, and may send again what the first one sent. Receivers tell by the id.
"""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import BooleanField, Case, ExpressionWrapper, F, Q, When
from django.utils import timezone
from psycopg.types.json import Jsonb

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_rows
from integrations.deliveries.attempts import Events, send_one
from integrations.deliveries.connections import Connection, overdue
from integrations.deliveries.outbox import relay
from integrations.messages.message import Tags
from integrations.models import Delivery, Integration
from projects.models import FlagTag

log = logging.getLogger("flagadmin.integrations")

MAX_INTEGRATIONS = 200  # at the same time; each has a thread while it sends
BATCH = 50  # deliveries whose outcome is stored together
CLAIM_SECONDS = 60
MAX_TURN = 30.0  # seconds; together with a last attempt less than a claim
PAUSE = 1.0  # seconds between looks
KEPT = timedelta(days=30)
State = Delivery.State

_TESTS_FIRST = ExpressionWrapper(Q(event_id__isnull=False), BooleanField())

_CLAIM = """
UPDATE integrations_integration
SET send_after = now() + make_interval(secs => %(seconds)s), claimed_until = now() + make_interval(secs => %(seconds)s)
WHERE id IN (
  SELECT id FROM integrations_integration integration
  WHERE enabled AND send_after <= now() AND (claimed_until IS NULL OR claimed_until <= now()) AND EXISTS (
    SELECT FROM integrations_delivery WHERE integration_id = integration.id AND state = 'pending'
  )
  FOR UPDATE SKIP LOCKED
)
RETURNING id, claimed_until
"""

_OUTCOME = """
UPDATE integrations_delivery SET state = %s, attempts = %s, first_sent_at = %s, sent_at = %s, milliseconds = %s,
       state_details = %s, details = %s
WHERE id = %s
"""


def run(stop: threading.Event) -> None:
    """Relays and sends until the event is set."""
    pool = ThreadPoolExecutor(MAX_INTEGRATIONS, thread_name_prefix="deliveries")
    pause = PAUSE
    while not stop.wait(pause):
        begun = time.monotonic()
        try:
            relay()
            for integration_id, until in claim():
                pool.submit(send_turn, integration_id, until)
        except Exception:
            log.exception("Deliveries cannot be read.")
        finally:
            connection.close()
        overdue.end(time.monotonic())
        pause = max(PAUSE, 3 * (time.monotonic() - begun))
    pool.shutdown(wait=False, cancel_futures=True)


def claim() -> list[tuple[int, datetime]]:
    """The integrations that this server sends to now, and until when."""
    return fetch_rows(_CLAIM, {"seconds": CLAIM_SECONDS})


def send_turn(integration_id: int, until: datetime) -> None:
    """Sends what waits, until one fails or the time is up. Ends its claim, unless that expired and another began."""
    try:
        delay = send_pending(integration_id)
        after = timezone.now() + timedelta(seconds=delay)
        Integration.objects.filter(pk=integration_id, claimed_until=until).update(
            send_after=Case(When(send_after=until, then=after), default=F("send_after")),
            claimed_until=None,
        )
    except Exception:
        log.exception("Integration %s cannot be sent to.", integration_id)
    finally:
        connection.close()


def send_pending(integration_id: int) -> float:
    """Returns the seconds to wait before the next turn."""
    integration = Integration.objects.filter(pk=integration_id, enabled=True).first()
    receiver = Connection(time.monotonic() + MAX_TURN)
    try:
        while integration is not None and time.monotonic() < receiver.until:
            pending = integration.deliveries.filter(state=State.PENDING).order_by(_TESTS_FIRST, "id")[:BATCH]
            events = _list_events(deliveries := list(pending))
            if not deliveries:
                break
            delay = _send_batch(integration, deliveries, events, receiver)
            if delay is not None:
                return delay
    finally:
        receiver.close()
    return 0.0


def _send_batch(
    integration: Integration,
    deliveries: list[Delivery],
    events: Events,
    receiver: Connection,
) -> float | None:
    """Returns the seconds before the next attempt if one must be made again."""
    sent = []
    connection.close()  # nobody waits for a connection that only waits for a receiver
    try:
        for delivery in deliveries:
            outcome = send_one(integration, delivery, events, receiver)
            sent.append(delivery)
            if outcome.delay is not None:
                return outcome.delay
            if time.monotonic() > receiver.until:
                break
        return None
    finally:
        _store(sent)


def _store(deliveries: list[Delivery]) -> None:
    """The outcomes, in one round trip. Django's bulk_update takes twenty times the CPU, more than sending."""
    rows: list[tuple[Any, ...]] = [
        (
            each.state,
            each.attempts,
            each.first_sent_at,
            each.sent_at,
            each.milliseconds,
            each.state_details,
            None if each.details is None else Jsonb(each.details),
            each.pk,
        )
        for each in deliveries
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(_OUTCOME, rows)


def _list_events(deliveries: list[Delivery]) -> Events:
    """Each event with the tags that its flag has now, or had when it was deleted."""
    events = AuditEvent.objects.in_bulk([delivery.event_id for delivery in deliveries if delivery.event_id])
    tags: dict[str, Tags] = {}
    names = {event.feature for event in events.values() if event.feature}
    rows = FlagTag.objects.filter(flag__name__in=names).order_by("tag_type_id", "value")
    for name, tag_type, value in rows.values_list("flag__name", "tag_type_id", "value"):
        tags.setdefault(name, []).append({"type": tag_type, "value": value})
    return {
        pk: (event, _list_last_tags(event) or tags.get(event.feature or "", []))
        for pk, event in events.items()
    }


def _list_last_tags(event: AuditEvent) -> Tags:
    """Those of a flag that this event has deleted."""
    before = event.before if event.type == EventType.FEATURE_DELETED else None
    return before.get("tags") or [] if isinstance(before, dict) else []


def delete_old_deliveries() -> None:
    """Deletes deliveries that are done. One that is pending stays until it has been sent or given up."""
    old = Delivery.objects.exclude(state=State.PENDING).filter(sent_at__lt=timezone.now() - KEPT)
    old.delete()
