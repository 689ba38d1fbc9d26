"""Sends deliveries: one after the other for each integration, and all integrations at the same time.

Every server may send. One claims an integration by setting `send_after` to a time by which it will be done; if it is
killed, another one goes on then, and may send again what the first one sent. Receivers tell by the id.
"""

import http.client
import logging
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from integrations.connections import Answer, Connection, Refused, overdue
from integrations.models import Delivery, Integration, SecretKeyChanged
from integrations.outgoing import Outgoing, make_request, sign, valid_keys
from integrations.providers import PROVIDERS
from integrations.relay import relay
from projects.models import FlagTag

log = logging.getLogger("flagadmin.integrations")

MAX_INTEGRATIONS = 200  # at the same time; each has a thread while it sends
BATCH = 50  # deliveries whose outcome is stored together
CLAIM_SECONDS = 60
MAX_TURN = 30.0  # seconds; together with a last attempt less than a claim
PAUSE = 1.0  # seconds between looks
GIVE_UP_AFTER = timedelta(days=1)
FIRST_DELAY, MAX_DELAY = 2.0, 3600.0  # seconds before another attempt
KEPT = timedelta(days=30)
State = Delivery.State

_TESTS_FIRST = ExpressionWrapper(Q(event_id__isnull=False), BooleanField())

_CLAIM = """
UPDATE integrations_integration SET send_after = now() + make_interval(secs => %s)
WHERE id IN (
  SELECT id FROM integrations_integration integration
  WHERE enabled AND send_after <= now() AND EXISTS (
    SELECT FROM integrations_delivery WHERE integration_id = integration.id AND state = 'pending'
  )
  FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``delay``: seconds before another attempt, None if there is none."""

    state: Delivery.State
    text: str
    delay: float | None = None


def run(stop: threading.Event) -> None:
    """Relays and sends until the event is set."""
    pool = ThreadPoolExecutor(MAX_INTEGRATIONS, thread_name_prefix="deliveries")
    pause = PAUSE
    while not stop.wait(pause):
        begun = time.monotonic()
        try:
            relay()
            for integration_id in claim():
                pool.submit(send_turn, integration_id)
        except Exception:
            log.exception("Deliveries cannot be read.")
        finally:
            connection.close()
        overdue.end(time.monotonic())
        pause = max(PAUSE, 3 * (time.monotonic() - begun))
    pool.shutdown(wait=False, cancel_futures=True)


def claim() -> list[int]:
    """The integrations that this server sends to now."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [CLAIM_SECONDS])
        return [row[0] for row in cursor.fetchall()]


def send_turn(integration_id: int) -> None:
    """Sends what waits, until one fails or the time is up."""
    try:
        delay = send_pending(integration_id)
        after = timezone.now() + timedelta(seconds=delay)
        Integration.objects.filter(pk=integration_id).update(send_after=after)
    except Exception:
        log.exception("Integration %s cannot be sent to.", integration_id)
    finally:
        connection.close()


def send_pending(integration_id: int) -> float:
    """Returns the seconds to wait before the next turn."""
    integration = Integration.objects.filter(pk=integration_id, enabled=True).first()
    receiver, end = Connection(), time.monotonic() + MAX_TURN
    try:
        while integration is not None and time.monotonic() < end:
            pending = integration.deliveries.filter(state=State.PENDING).order_by(_TESTS_FIRST, "id")[:BATCH]
            events = _events_of(deliveries := list(pending))
            if not deliveries:
                break
            delay = _send_batch(integration, deliveries, events, receiver, end)
            if delay is not None:
                return delay
    finally:
        receiver.close()
    return 0.0


def _send_batch(
    integration: Integration,
    deliveries: list[Delivery],
    events: dict[int, Any],
    receiver: Connection,
    end: float,
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
            if time.monotonic() > end:
                break
        return None
    finally:
        Delivery.objects.bulk_update(
            sent,
            ["state", "attempts", "first_sent_at", "sent_at", "milliseconds", "state_details", "details"],
        )


def send_one(
    integration: Integration, delivery: Delivery, events: dict[int, Any], receiver: Connection
) -> Outcome:
    """One attempt. Notes its outcome in ``delivery``, which is not stored yet."""
    now, begun = timezone.now(), time.monotonic()
    delivery.attempts += 1
    delivery.sent_at = now
    delivery.first_sent_at = delivery.first_sent_at or now
    outcome = _attempt(integration, delivery, events, receiver)
    if outcome.delay is not None and now - delivery.first_sent_at > GIVE_UP_AFTER:
        outcome = Outcome(State.FAILED, f"{outcome.text} Given up after {delivery.attempts} attempts.")
    delivery.milliseconds = round(1000 * (time.monotonic() - begun))
    delivery.state, delivery.state_details = outcome.state, outcome.text
    return outcome


def _attempt(
    integration: Integration, delivery: Delivery, events: dict[int, Any], receiver: Connection
) -> Outcome:
    provider = PROVIDERS[integration.provider]
    event, tags = events.get(delivery.event_id or 0) or (test_event(), [])
    try:
        secrets = integration.secrets()
        request = make_request(provider, integration.parameters | secrets["parameters"], event, tags)
    except SecretKeyChanged:
        return Outcome(State.FAILED, "SECRET_KEY has changed. Enter the secrets of this integration again.")
    delivery.details = request.details
    keys = valid_keys(secrets["keys"])
    try:
        answer = receiver.post(
            request.url, request.body, request.headers | _message_headers(delivery, keys, request)
        )
    except (Refused, ValueError) as error:
        return Outcome(State.FAILED, f"{provider.label} was not sent: {error}")
    except (OSError, http.client.HTTPException) as error:
        return Outcome(
            State.PENDING, f"{provider.label} failed: {error or type(error).__name__}.", _delay(delivery)
        )
    delivery.details |= {"answer": answer.text} if answer.text else {}
    return _judge(answer, provider.label, delivery, request.errors)


def _message_headers(delivery: Delivery, keys: list[str], request: Outgoing) -> dict[str, str]:
    """Those of Standard Webhooks. The id is the same in all attempts."""
    message_id, moment = f"msg_{delivery.pk}", int(time.time())
    headers = {"webhook-id": message_id, "webhook-timestamp": str(moment)}
    return headers | ({"webhook-signature": sign(keys, message_id, moment, request.body)} if keys else {})


def _judge(answer: Answer, label: str, delivery: Delivery, errors: list[str]) -> Outcome:
    if 200 <= answer.status < 300:
        text = f"{label} was successful with status code: {answer.status}."
        return Outcome(State.WITH_ERRORS if errors else State.SUCCESS, " ".join([text, *errors]))
    text = " ".join([f"{label} failed with status code: {answer.status}.", *errors])
    if answer.status in (408, 429) or answer.status >= 500:
        return Outcome(State.PENDING, text, max(_delay(delivery), _asked_delay(answer)))
    return Outcome(State.FAILED, text)


def _delay(delivery: Delivery) -> float:
    """Twice as long each time, more or less."""
    return min(FIRST_DELAY * 2 ** min(delivery.attempts - 1, 20), MAX_DELAY) * random.uniform(0.75, 1.25)


def _asked_delay(answer: Answer) -> float:
    """``Retry-After``: seconds or a date, at most an hour."""
    text = answer.retry_after.strip()
    try:
        if text.isascii() and text.isdigit():
            seconds = float(text[:10])
        else:
            seconds = (parsedate_to_datetime(text).replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, IndexError):
        return 0.0
    return min(max(seconds, 0.0), MAX_DELAY)


def _events_of(deliveries: list[Delivery]) -> dict[int, tuple[AuditEvent, list[dict[str, str]]]]:
    """Each event with the tags that its flag has now."""
    events = AuditEvent.objects.in_bulk([delivery.event_id for delivery in deliveries if delivery.event_id])
    tags: dict[str, list[dict[str, str]]] = {}
    names = {event.feature for event in events.values() if event.feature}
    rows = FlagTag.objects.filter(flag__name__in=names).order_by("tag_type_id", "value")
    for name, tag_type, value in rows.values_list("flag__name", "tag_type_id", "value"):
        tags.setdefault(name, []).append({"type": tag_type, "value": value})
    return {pk: (event, tags.get(event.feature or "", [])) for pk, event in events.items()}


def test_event() -> AuditEvent:
    """What a test delivery says."""
    return AuditEvent(
        id=0,
        type="integration-test",
        created_at=timezone.now(),
        actor_name="flagadmin",
        subject="This is a test.",
        comment="",
        after={"message": "This is a test."},
    )


def delete_old_deliveries() -> None:
    """Those that are done. One that is pending stays until it has been sent or given up."""
    old = Delivery.objects.exclude(state=State.PENDING).filter(sent_at__lt=timezone.now() - KEPT)
    old.delete()
