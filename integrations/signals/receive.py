"""Receives a signal, and applies the matching rules, each with the rights of the user who saved it last.

Matches a signal against the conditions of a rule. Pure: knows no database.

Says whose rights the alerts of a source have: those of the person who got its token and could send any
alert.
"""

import hmac
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import (
    AppError,
    AuthenticationRequired,
    MaintenanceMode,
    TooManyRequests,
    ValidationError,
)
from flagadmin.core.installation.state import check_writable
from groups.access import NOTHING, Caller, Permission
from groups.tokens import hash_secret
from integrations.models import Signal, SignalDone, SignalRule, SignalSource
from projects.access import access_flag_for_update
from projects.flags.environments.actions import disable_flag
from releases.models import ReleasePlan, Safeguard
from releases.plans.actions import pause_plan
from releases.plans.queries import FlagPath, access_flag_in, read_plans
from releases.safeguards.actions import may_breach, note_alert
from releases.safeguards.queries import list_waiting_for_alerts

ANY = "*"
MAX_ALERTS = 100  # of one request of Alertmanager
MAX_SUMMARY = 300  # characters
_SUMMARIES = (
    "annotations.summary",
    "annotations.description",
    "summary",
    "title",
    "message",
    "labels.alertname",
)

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """One statement of a signal. Items with the same ``key`` are repetitions; "" marks a unique one."""

    document: Document
    key: str

    @property
    def summary(self) -> str:
        texts = (look_up(self.document, path) for path in _SUMMARIES)
        return " ".join(next((text for text in texts if text), "").split())[:MAX_SUMMARY]


def read_items(kind: str, body: Document) -> list[Item]:
    """Reads each firing alert of Alertmanager, or the body itself. Raises ValueError with the problem."""
    if kind != "alertmanager":
        return [Item(body, look_up(body, "id"))]
    alerts = body.get("alerts")
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise ValueError("alerts must be a list of objects, as Alertmanager sends them")
    if len(alerts) > MAX_ALERTS:
        raise ValueError(f"alerts must have at most {MAX_ALERTS} items; this has {len(alerts):,}")
    return [Item(alert, _make_key(alert)) for alert in alerts if alert.get("status", "firing") == "firing"]


def _make_key(alert: Document) -> str:
    return " ".join(filter(None, (look_up(alert, "fingerprint"), look_up(alert, "startsAt"))))


def meets(match: Mapping[str, str], document: Document) -> bool:
    """Whether the document has each value, or any at all for ``*``."""
    return all(
        (text := look_up(document, path)) == value or (value == ANY and text != "")
        for path, value in match.items()
    )


def look_up(document: Any, path: str) -> str:
    """The text at a path like ``labels.severity``; "" if there is none. Names may contain dots."""
    if not isinstance(document, Mapping):
        return ""
    if path in document:
        return _as_text(document[path])
    dot = path.find(".")
    while dot != -1:
        if path[:dot] in document and (text := look_up(document[path[:dot]], path[dot + 1 :])):
            return text
        dot = path.find(".", dot + 1)
    return ""


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


log = logging.getLogger("flagadmin.integrations")

MAX_SIGNALS = 60  # of a source in a minute
MAX_KEPT = 100  # listed signals of a source
MAX_KEY = 300
KEPT = timedelta(days=30)
Result = dict[str, Any]


class Repeated(Exception):
    """The rule has already acted on this."""


def authenticate_source(name: str, token: str) -> SignalSource:
    """Raises AuthenticationRequired, also for a source that does not exist."""
    source = SignalSource.objects.filter(name=name).first()
    expected = source.token_hash if source else ""
    if not hmac.compare_digest(hash_secret(token), expected) or source is None:
        raise AuthenticationRequired
    return source


def receive_signal(source: SignalSource, body: Mapping[str, Any]) -> Signal:
    """Raises ValidationError, TooManyRequests, MaintenanceMode."""
    try:
        items = read_items(source.kind, body)
    except ValueError as error:
        raise ValidationError.at("alerts", str(error)) from None
    signal = _store(source, body)
    if source.kind == SignalSource.Kind.ALERTMANAGER:
        _tell_safeguards(body["alerts"], find_holder(source))
    rules = source.rules.filter(enabled=True).select_related("author", "source")
    for rule in rules:
        for item in items:
            if meets(rule.match, item.document):
                signal.results.append(_apply(rule, item))
    signal.save(update_fields=["results"])
    return signal


def _tell_safeguards(alerts: Sequence[Mapping[str, Any]], holder: Caller) -> None:
    """Reports alerts, and their end, to the safeguards that wait for them and that the holder may breach."""
    for alert in alerts:
        name = look_up(alert, "labels.alertname")
        labels = alert.get("labels")
        if name and isinstance(labels, Mapping):
            texts = {key: value for key, value in labels.items() if isinstance(value, str)}
            note_alert(name, texts, fires=alert.get("status", "firing") == "firing", caller=holder)


def try_rule(rule: SignalRule, body: Mapping[str, Any]) -> list[Result]:
    """Shows the effect of an example without changing anything. Raises ValidationError."""
    try:
        items = read_items(rule.source.kind, body)
    except ValueError as error:
        raise ValidationError.at("alerts", str(error)) from None
    return [
        {"item": number, "meets": meets(rule.match, item.document), "summary": item.summary}
        for number, item in enumerate(items, 1)
    ]


@transactional
def _store(source: SignalSource, body: Mapping[str, Any]) -> Signal:
    check_writable()
    SignalSource.objects.select_for_update().get(pk=source.pk)
    since = timezone.now() - timedelta(minutes=1)
    if source.signals.filter(received_at__gt=since).count() >= MAX_SIGNALS:
        raise TooManyRequests(
            f"{source.name} sent {MAX_SIGNALS} signals within a minute. Wait and send it again.",
            headers={"Retry-After": "60"},
        )
    signal = Signal.objects.create(source=source, body=body)
    if oldest := source.signals.values_list("pk", flat=True)[MAX_KEPT:][:1]:
        source.signals.filter(pk__lte=oldest[0]).delete()
    return signal


def _apply(rule: SignalRule, item: Item) -> Result:
    """Applies the rule and returns the result. A failing rule does not keep others from acting."""
    result = {"rule": rule.name, "project": rule.project, "flag": rule.flag, "environment": rule.environment}
    if rule.suspended_at is not None:
        who = f"{rule.suspended_by} has replaced the token of this source."
        why = f"{who} Its author or an admin must save the rule again."
        return result | {"result": "refused", "why": why}
    if rule.author is None or not rule.author.is_active:
        what = "deactivated" if rule.author else "deleted"
        why = f"The account that saved this rule was {what}. Save the rule again."
        return result | {"result": "refused", "why": why}
    caller = Caller(user=rule.author).asking(skips_requests=True, breaks_expectations=True)
    comment = f"Signal of {rule.source.name}: {item.summary or rule.name}"
    try:
        # Around the action, whose checks run at its end.
        with changing(comment=tidy_comment(comment)):
            return result | {"result": _act(rule, item, caller)}
    except Repeated:
        # Remembered for as long as it repeats, and a month.
        SignalDone.objects.filter(rule=rule, key=_fit_key(item.key)).update(at=timezone.now())
        return result | {"result": "repeated"}
    except MaintenanceMode:
        raise
    except (AppError, Refusal) as error:
        return result | {"result": "refused", "why": error.message}


@transactional
def _act(rule: SignalRule, item: Item, caller: Caller) -> str:
    """All or nothing, so that only completed actions are recorded. Raises AppError, Refusal, Repeated."""
    with transaction.atomic():
        if item.key:
            _, is_new = SignalDone.objects.get_or_create(rule=rule, key=_fit_key(item.key))
            if not is_new:
                raise Repeated
        result = _DO[SignalRule.Action(rule.then)](rule, item, caller)
        _note(rule, item, caller)
    return result


def _fit_key(key: str) -> str:
    """The key as its column stores it: a long one as its digest."""
    return key if len(key) <= MAX_KEY else sha256(key.encode()).hexdigest()


def _turn_off(rule: SignalRule, item: Item, caller: Caller) -> str:
    was_on = disable_flag(rule.project, rule.flag, rule.environment, caller=caller)
    return "turnedOff" if was_on else "wasOff"


def _pause_plan(rule: SignalRule, item: Item, caller: Caller) -> str:
    place = FlagPath(rule.project, rule.flag, rule.environment)
    flag = access_flag_in(place, Permission.UPDATE_FEATURE_STRATEGY, caller)
    running = read_plans(flag, rule.environment).filter(state=ReleasePlan.State.RUNNING).first()
    if running is None:
        return "noRunningPlan"
    pause_plan(place, str(running.pk), reason=f"A signal of {rule.source.name} has paused it.", caller=caller)
    return "paused"


def _do_nothing(rule: SignalRule, item: Item, caller: Caller) -> str:
    return "noted"


_DO = {
    SignalRule.Action.TURN_OFF: _turn_off,
    SignalRule.Action.PAUSE_PLAN: _pause_plan,
    SignalRule.Action.NOTE: _do_nothing,
}


def _note(rule: SignalRule, item: Item, caller: Caller) -> None:
    """Records an event of the flag, for its page. Raises NotFound, NoAccess."""
    access_flag_for_update(caller, rule.project, rule.flag, None)
    event = Event(
        type=EventType.SIGNAL_RECEIVED,
        project=rule.project,
        environment=rule.environment,
        feature=rule.flag,
        subject=rule.source.name,
        after={"rule": rule.name, "then": rule.then, "summary": item.summary, "match": rule.match},
    )
    record(event, actor=caller)


def delete_old_signals() -> None:
    before = timezone.now() - KEPT
    Signal.objects.filter(received_at__lt=before).delete()
    SignalDone.objects.filter(at__lt=before).delete()


def find_holder(source: SignalSource) -> Caller:
    """flagadmin itself if no person has got the token, or it is not known; nobody's rights if they are gone."""
    if not source.token_by_name:
        return Caller.system()
    user = source.token_by
    return Caller(user=user) if user and user.is_active else Caller(user=user, rights=NOTHING)


def list_deaf_safeguards(caller: Caller) -> list[Safeguard]:
    """The safeguards of readable projects that wait for an alert, and that no source may tell."""
    waiting = list(list_waiting_for_alerts(caller))
    if not waiting:
        return []
    sources = SignalSource.objects.filter(kind=SignalSource.Kind.ALERTMANAGER).select_related("token_by")
    holders = [find_holder(source) for source in sources]
    return [each for each in waiting if not any(may_breach(holder, each) for holder in holders)]
