"""One attempt to deliver an event: its requests, the meaning of the answers, and the time of the next attempt."""

import http.client
import logging
import random
import smtplib
import time
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.db import DatabaseError, connection
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.outside import Refused, read_retry_after
from flagadmin.core.server import background_tasks
from groups.models import PrivateProject
from integrations.deliveries.connections import TIMEOUT, Answer, Connection
from integrations.messages.message import Effect, Message, Tags, find_effect, list_production_names
from integrations.messages.outgoing import Mail, Outgoing, list_valid_keys, sign
from integrations.models import Delivery, Integration, SecretKeyChanged
from integrations.providers import PROVIDERS
from projects.history.queries import leave_out_projects

log = logging.getLogger("flagadmin.integrations")

GIVE_UP_AFTER = timedelta(days=1)
REFUSED_FOR = timedelta(minutes=10)
"""How long to retry a receiver that does not recognize the URL or the key."""
FIRST_DELAY, MAX_DELAY = 2.0, 3600.0  # seconds before another attempt
State = Delivery.State
Events = Mapping[int, tuple[AuditEvent, Tags]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``delay``: seconds before the next attempt; None if there is none."""

    state: Delivery.State
    text: str
    delay: float | None = None


def send_one(integration: Integration, delivery: Delivery, events: Events, receiver: Connection) -> Outcome:
    """Makes one attempt. Sets its outcome in ``delivery``, without storing it."""
    now, begun = timezone.now(), time.monotonic()
    delivery.attempts += 1
    delivery.sent_at = now
    delivery.first_sent_at = delivery.first_sent_at or now
    label = PROVIDERS[integration.provider].label
    try:
        outcome = _attempt(integration, delivery, events, receiver)
    except DatabaseError:
        raise
    except Exception:
        log.exception("Delivery %s cannot be made.", delivery.pk)
        outcome = Outcome(
            State.PENDING, f"{label} could not be made. The log says why.", _choose_delay(delivery)
        )
    finally:
        connection.close()  # frees a database connection while the thread waits for a receiver
    if outcome.delay is not None and now - delivery.first_sent_at > GIVE_UP_AFTER:
        outcome = Outcome(State.FAILED, f"{outcome.text} Given up after {delivery.attempts} attempts.")
    delivery.milliseconds = round(1000 * (time.monotonic() - begun))
    delivery.state, delivery.state_details = outcome.state, outcome.text
    return outcome


def _attempt(integration: Integration, delivery: Delivery, events: Events, receiver: Connection) -> Outcome:
    event, tags = events.get(delivery.event_id or 0) or (make_test_event(), [])
    message = Message(_narrow(integration, event), tags)
    try:
        secrets = integration.secrets()
    except SecretKeyChanged:
        return Outcome(State.FAILED, SecretKeyChanged.message)
    if integration.only_if_users_change and delivery.event_id:
        message.effect = _find_effect(integration, event)
        if message.effect is not None and message.effect.is_nothing:
            return Outcome(State.LEFT_OUT, "No generated user gets a different result.")
    provider = PROVIDERS[integration.provider]
    request = provider.make_request(integration.parameters | secrets["parameters"], message)
    connection.close()
    if isinstance(request, Mail):
        return _send_mail(request, delivery)
    return _send_requests(request, delivery, receiver, provider.label, list_valid_keys(secrets["keys"]))


def _narrow(integration: Integration, event: AuditEvent) -> AuditEvent:
    """The event without the parts that an integration of these projects, or of all but private ones, may not report."""
    projects = integration.projects
    is_for_all = not projects or "*" in projects

    def may_report(project: str) -> bool:
        if project in projects:
            return True
        return is_for_all and not PrivateProject.objects.filter(pk=project).exists()

    narrowed = copy(event)
    narrowed.before, narrowed.after = leave_out_projects(event, may_report)
    return narrowed


def _find_effect(integration: Integration, event: AuditEvent) -> Effect | None:
    """Finds the effect in the integration's environments; None if it is unknown, and the event is sent without it."""
    try:
        effect = find_effect(event)
    except DatabaseError:
        raise
    except Exception:
        log.exception("Whom event %s changed is not known.", event.pk)
        return None
    if effect is None:
        return None
    if integration.production_only:
        effect = effect.within(list_production_names())
    names = integration.environments
    return effect.within(None if not names or "*" in names else names)


def _send_requests(
    request: Outgoing, delivery: Delivery, receiver: Connection, label: str, keys: list[str]
) -> Outcome:
    """Sends the requests in turn, except those that arrived at an earlier attempt. A refused one does not stop the
    others.

    When the turn is over, the rest waits for the next one: another server may send once the claim has expired.
    """
    arrived = set((delivery.details or {}).get("arrived", ()))
    delivery.details = request.details | ({"arrived": sorted(arrived)} if arrived else {})
    outcome = Outcome(
        State.FAILED, f"{label} has no channel: tag the flag with one, or set a default channel."
    )
    failures: dict[str, str] = {}
    for name, body in request.bodies.items():
        if name and name in arrived:
            continue
        outcome = _send_request(request, body, delivery, receiver, label, keys)
        if outcome.state is State.PENDING:
            return outcome
        if outcome.state is State.FAILED:
            failures[name] = outcome.text
        elif name:
            arrived.add(name)
            delivery.details["arrived"] = sorted(arrived)
            if time.monotonic() > receiver.until and not arrived.issuperset(request.bodies):
                return Outcome(State.PENDING, f"{outcome.text} The other channels follow.", delay=0.0)
    return _combine(outcome, failures, arrived) if len(request.bodies) > 1 and failures else outcome


def _combine(last: Outcome, failures: Mapping[str, str], arrived: Collection[str]) -> Outcome:
    """The combined outcome of several requests, some of which failed. Names the recipient of each failed one."""
    said = [last.text] if last.state is not State.FAILED else []
    text = " ".join([*said, *(f"{name}: {reason}" for name, reason in failures.items())])
    return Outcome(State.WITH_ERRORS if arrived else State.FAILED, text)


def _send_request(
    request: Outgoing, body: bytes, delivery: Delivery, receiver: Connection, label: str, keys: list[str]
) -> Outcome:
    try:
        answer = receiver.post(
            request.url, body, request.headers | _make_message_headers(delivery, keys, body)
        )
    except (Refused, ValueError) as error:
        return Outcome(State.FAILED, f"{label} was not sent: {error}")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or error or type(error).__name__
        return Outcome(State.PENDING, f"{label} failed: {reason}.", _choose_delay(delivery))
    assert delivery.details is not None
    delivery.details |= {"answer": answer.text} if answer.text else {}
    return _judge(answer, label, delivery, request)


def _send_mail(request: Mail, delivery: Delivery) -> Outcome:
    """Sends the mail with the same Message-ID in all attempts."""
    delivery.details = request.details
    if not settings.EMAIL_HOST:
        return Outcome(State.FAILED, "Email was not sent: this installation has no FLAGADMIN_SMTP_URL.")
    host = urlsplit(background_tasks.public_url).hostname or "flagadmin"
    mail = EmailMultiAlternatives(
        request.subject,
        request.text,
        to=request.recipients,
        headers={"Message-ID": f"<msg_{delivery.pk}@{host}>"},
        connection=get_connection(timeout=TIMEOUT),
    )
    mail.attach_alternative(request.html, "text/html")
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as error:
        return _judge_refusal(error, delivery)
    except (OSError, smtplib.SMTPException) as error:
        return Outcome(
            State.PENDING,
            f"Email failed: {getattr(error, 'strerror', None) or error}.",
            _choose_delay(delivery),
        )
    return Outcome(State.SUCCESS, f"Email was sent to {', '.join(request.recipients)}.")


def _judge_refusal(error: smtplib.SMTPRecipientsRefused, delivery: Delivery) -> Outcome:
    """Codes from 500 on are final."""
    text = f"Email failed: {', '.join(error.recipients)} refused."
    if all(code >= 500 for code, _ in error.recipients.values()):
        return Outcome(State.FAILED, text)
    return Outcome(State.PENDING, text, _choose_delay(delivery))


def _make_message_headers(delivery: Delivery, keys: list[str], body: bytes) -> dict[str, str]:
    """Makes the headers of Standard Webhooks. The id is the same in all attempts."""
    message_id, moment = f"msg_{delivery.pk}", int(time.time())
    headers = {"webhook-id": message_id, "webhook-timestamp": str(moment)}
    return headers | ({"webhook-signature": sign(keys, message_id, moment, body)} if keys else {})


def _judge(answer: Answer, label: str, delivery: Delivery, request: Outgoing) -> Outcome:
    errors = request.errors
    if 200 <= answer.status < 300:
        if refusal := request.find_refusal(answer):
            text = " ".join([refusal, *errors])
            if request.passes(refusal):
                return Outcome(State.PENDING, text, _choose_delay(delivery))
            return Outcome(State.FAILED, text)
        text = f"{label} was successful with status code: {answer.status}."
        return Outcome(State.WITH_ERRORS if errors else State.SUCCESS, " ".join([text, *errors]))
    text = " ".join([f"{label} failed with status code: {answer.status}.", *errors])
    if answer.status in (408, 429) or answer.status >= 500 or _may_come_back(answer, delivery):
        wanted_delay = min(read_retry_after(answer.retry_after) or 0.0, MAX_DELAY)
        return Outcome(State.PENDING, text, max(_choose_delay(delivery), wanted_delay))
    return Outcome(State.FAILED, text)


def _may_come_back(answer: Answer, delivery: Delivery) -> bool:
    """Whether the receiver may just be restarting or receiving a new key."""
    tried_for = timezone.now() - (delivery.first_sent_at or timezone.now())
    return answer.status in (401, 403, 404) and tried_for < REFUSED_FOR


def _choose_delay(delivery: Delivery) -> float:
    """Doubles the delay each time, with some randomness."""
    return min(FIRST_DELAY * 2 ** min(delivery.attempts - 1, 20), MAX_DELAY) * random.uniform(0.75, 1.25)


def make_test_event() -> AuditEvent:
    """Makes the event reported by a test delivery."""
    return AuditEvent(
        id=0,
        type="integration-test",
        created_at=timezone.now(),
        actor_name="flagadmin",
        subject="This is a test.",
        comment="",
        after={"message": "This is a test."},
    )
