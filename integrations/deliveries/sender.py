"""Sends deliveries: one after the other for each integration, and all integrations at the same time.

Every server may send. A server claims an integration by setting `claimed_until` to a time by which it will be done. If
it is killed, another one continues then, and may repeat deliveries; receivers recognize them by their id.

Changes are not slowed down. Ids are assigned before commits, so an event with a lower id than the last one read may
still appear. When an id is noted (the mark), all transactions running then must end before all events up to it are
visible. Until then, the events are read again, and those that have a delivery are skipped. A trigger of the audit log
gives each transaction its own id before its events get theirs, so none of them is missed.
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
from flagadmin.core.db.statements import fetch_row, fetch_rows
from integrations.deliveries.attempts import Events, send_one
from integrations.deliveries.connections import Connection, overdue
from integrations.messages.message import Tags
from integrations.models import Delivery, Integration, Relay
from projects.models import FlagTag

log = logging.getLogger("flagadmin.integrations")

MAX_INTEGRATIONS = 200  # at the same time, each with a thread while it sends
BATCH = 50  # deliveries whose outcomes are stored together
CLAIM_SECONDS = 60
RENEW_SECONDS = 15.0
MAX_TURN = 30.0  # seconds; with a last attempt still shorter than a claim
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

_RENEW = """
UPDATE integrations_integration
SET claimed_until = now() + make_interval(secs => %(seconds)s),
    send_after = CASE WHEN send_after = claimed_until THEN now() + make_interval(secs => %(seconds)s)
                      ELSE send_after END
WHERE id = %(id)s AND claimed_until = %(until)s
RETURNING claimed_until
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
    """The integrations claimed by this server, and the end of each claim."""
    return fetch_rows(_CLAIM, {"seconds": CLAIM_SECONDS})


def send_turn(integration_id: int, until: datetime) -> None:
    """Sends pending deliveries until one fails or the time is up. Then ends its claim, unless another one has begun."""
    claim = Claim(integration_id, until)
    try:
        delay = send_pending(claim)
        after = timezone.now() + timedelta(seconds=delay)
        Integration.objects.filter(pk=integration_id, claimed_until=claim.until).update(
            send_after=Case(When(send_after=claim.until, then=after), default=F("send_after")),
            claimed_until=None,
        )
    except Exception:
        log.exception("Integration %s cannot be sent to.", integration_id)
    finally:
        connection.close()


class Claim:
    """The claim of a turn. A thread may wait for its turn, or for the processor, longer than its claim lasts."""

    def __init__(self, integration_id: int, until: datetime) -> None:
        self.integration_id, self.until = integration_id, until
        self._renewed_at: float | None = None

    def holds(self) -> bool:
        """Checked before each request. Renews the claim; false if it has expired and another server has claimed it."""
        now = time.monotonic()
        if self._renewed_at is not None and now - self._renewed_at < RENEW_SECONDS:
            return True
        wanted = {"seconds": CLAIM_SECONDS, "id": self.integration_id, "until": self.until}
        for (self.until,) in (renewed := fetch_rows(_RENEW, wanted)):
            self._renewed_at = now
        connection.close()  # frees a database connection while the thread waits for a receiver
        return bool(renewed)


def send_pending(claim: Claim) -> float:
    """Returns the seconds to wait before the next turn."""
    integration = Integration.objects.filter(pk=claim.integration_id, enabled=True).first()
    receiver = Connection(time.monotonic() + MAX_TURN)
    try:
        while integration is not None and time.monotonic() < receiver.until and claim.holds():
            pending = integration.deliveries.filter(state=State.PENDING).order_by(_TESTS_FIRST, "id")[:BATCH]
            events = _list_events(deliveries := list(pending))
            if not deliveries:
                break
            delay = _send_batch(integration, deliveries, events, receiver, claim)
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
    claim: Claim,
) -> float | None:
    """Returns the seconds before the next attempt if one must be made again."""
    sent = []
    connection.close()  # frees a database connection while the thread waits for a receiver
    try:
        for delivery in deliveries:
            outcome = send_one(integration, delivery, events, receiver)
            sent.append(delivery)
            if outcome.delay is not None:
                return outcome.delay
            if time.monotonic() > receiver.until or not claim.holds():
                break
        return None
    finally:
        _store(sent)


def _store(deliveries: list[Delivery]) -> None:
    """Stores the outcomes in one round trip. Django's bulk_update takes twenty times the CPU, more than sending."""
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
    """The events, each with its flag's current tags, or the last tags of a deleted flag."""
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
    """The tags of the flag deleted by this event."""
    before = event.before if event.type == EventType.FEATURE_DELETED else None
    return before.get("tags") or [] if isinstance(before, dict) else []


def delete_old_deliveries() -> None:
    """Deletes finished deliveries. A pending one stays until it has been sent or given up."""
    old = Delivery.objects.exclude(state=State.PENDING).filter(sent_at__lt=timezone.now() - KEPT)
    old.delete()


_LAST_ID = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM audit_auditevent_id_seq"

# One statement, so that it sees transactions and their events at the same moment.
_DELIVER = """
WITH made AS (
  INSERT INTO integrations_delivery (integration_id, event_id)
  SELECT integration.id, event.id
  FROM audit_auditevent event
  JOIN integrations_integration integration ON integration.enabled
    AND event.type = ANY(integration.events)
    AND event.created_at >= integration.created_at
    AND ((cardinality(integration.projects) = 0 OR '*' = ANY(integration.projects))
            AND NOT EXISTS (SELECT FROM groups_privateproject private WHERE private.project_id = event.project)
         OR event.project = ANY(integration.projects)
            AND event.id <= coalesce((integration.ended #>> ARRAY['projects', event.project])::bigint, event.id))
    AND (cardinality(integration.environments) = 0 OR '*' = ANY(integration.environments)
         OR event.environment IS NULL OR event.environment = ANY(integration.environments)
            AND event.id <= coalesce(
                (integration.ended #>> ARRAY['environments', event.environment])::bigint, event.id))
    AND (NOT integration.production_only OR event.environment IS NULL
         OR EXISTS (SELECT FROM projects_environment WHERE name = event.environment AND type = 'production'))
    AND (cardinality(integration.tags) = 0 OR EXISTS (
         SELECT FROM projects_flagtag tag JOIN projects_flag flag ON flag.id = tag.flag_id
         WHERE flag.name = event.feature AND tag.tag_type_id || ':' || tag.value = ANY(integration.tags))
         OR event.type = 'feature-deleted' AND EXISTS (
         SELECT FROM jsonb_path_query(event.before, '$.tags[*]') tag
         WHERE (tag ->> 'type') || ':' || (tag ->> 'value') = ANY(integration.tags)))
  WHERE event.id > %s AND NOT EXISTS (
    SELECT FROM integrations_delivery delivery
    WHERE delivery.integration_id = integration.id AND delivery.event_id = event.id
  )
  ORDER BY event.created_at, event.id
  RETURNING 1
)
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
       (SELECT count(*) FROM made)
"""


def read_settled_id() -> int:
    """The id up to which no further event can appear."""
    position = Relay.objects.first()
    return position.settled_id if position else 0


@transaction.atomic
def relay() -> int:
    """Relays events. Returns the number of new deliveries; 0 if another server is relaying."""
    position = Relay.objects.select_for_update(skip_locked=True).first()
    if position is None:
        if not Relay.objects.exists():
            Relay.objects.create(pk=1, settled_id=0, mark_id=0, mark_xid=0)
        return 0
    (last_id,) = fetch_row(_LAST_ID)
    if last_id == position.settled_id:
        return 0
    oldest_running, next_xid, made = fetch_row(_DELIVER, [position.settled_id])
    settle(position, last_id, oldest_running, next_xid)
    position.save()
    return made


def settle(position: Relay, last_id: int, oldest_running: int, next_xid: int) -> None:
    """Moves the position to the last id before which no event can appear. Any running transaction of the
    server delays it.
    """
    is_restored = (
        next_xid < position.mark_xid
    )  # restored into another server, which numbers transactions anew
    if position.mark_id > position.settled_id and not is_restored and oldest_running >= position.mark_xid:
        position.settled_id = position.mark_id
    if position.mark_id <= position.settled_id or is_restored:
        position.mark_id, position.mark_xid = last_id, next_xid
