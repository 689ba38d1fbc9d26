"""Stores the reports of relays, derives their state, and counts them for `/metrics`."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone
from django.utils.timesince import timesince
from prometheus_client import Gauge

from flagadmin.core.db.transactions import transactional
from flagadmin.core.metrics import process_name
from projects.models import Relay

MAX_RELAYS = 2_000
"""Above this, forgets the longest silent relays of the token that reports most."""
KEPT = timedelta(days=30)  # time without a report before a relay is deleted
COUNTED = timedelta(days=1)  # time without a report before a relay counts as removed

RELAYS = Gauge(
    "flagadmin_relays", "Relays that have said how they are, by their state.", ["state", "process"]
)

_CHANGING = [field.name for field in Relay._meta.concrete_fields if not field.primary_key]


@transactional
def store_relays(relays: Sequence[Relay]) -> None:
    """Replaces earlier reports, but not later ones: other relays pass reports on."""
    latest = {relay.identifier: relay for relay in sorted(relays, key=attrgetter("heard_at"))}
    # Replaces reports of a clock that was ahead.
    known = Relay.objects.filter(identifier__in=latest, heard_at__lte=timezone.now()).select_for_update()
    heard_at = dict(known.order_by("identifier").values_list("identifier", "heard_at"))
    in_order = [
        relay
        for identifier, relay in sorted(latest.items())  # so that two reports do not wait for each other
        if identifier not in heard_at or relay.heard_at >= heard_at[identifier]
    ]
    Relay.objects.bulk_create(
        in_order, update_conflicts=True, unique_fields=["identifier"], update_fields=_CHANGING
    )
    if Relay.objects.count() > MAX_RELAYS:
        of_token = Window(RowNumber(), partition_by="token_id", order_by=F("heard_at").desc())
        by_rank = Relay.objects.annotate(rank=of_token).order_by("rank", "-heard_at")
        kept = list(by_rank.values_list("identifier", flat=True)[:MAX_RELAYS])
        Relay.objects.exclude(identifier__in=kept).delete()


def review_relays() -> None:
    """A periodic task: forgets relays that have been silent for long, and counts the others."""
    now = timezone.now()
    Relay.objects.filter(heard_at__lt=now - KEPT).delete()
    for state, number in count_states(Relay.objects.filter(heard_at__gt=now - COUNTED), now).items():
        RELAYS.labels(state, process_name()).set(number)


MISSED = 3  # missed reports before a relay counts as silent
SLACK = timedelta(seconds=30)
OLD = timedelta(minutes=5)  # flags


class State(StrEnum):
    WORKING = "working"
    OLD_FLAGS = "old-flags"
    FAULTY = "faulty"
    SILENT = "silent"


def find_state(relay: Relay, now: datetime) -> State:
    if now - relay.heard_at > MISSED * timedelta(seconds=relay.interval) + SLACK:
        return State.SILENT
    if relay.faults:
        return State.FAULTY
    return State.OLD_FLAGS if timedelta(seconds=relay.flags_age) > OLD else State.WORKING


def describe_state(relay: Relay, now: datetime) -> str:
    state = find_state(relay, now)
    if state is State.SILENT:
        return f"Not heard of for {timesince(relay.heard_at, now, depth=1)}"
    if state is State.FAULTY:
        return " ".join(relay.faults)
    if state is State.OLD_FLAGS:
        return f"Its flags are {timesince(relay.flags_read_at, relay.heard_at, depth=1)} old"
    return "Works"


def count_states(relays: Iterable[Relay], now: datetime) -> Mapping[State, int]:
    counts = dict.fromkeys(State, 0)
    for relay in relays:
        counts[find_state(relay, now)] += 1
    return counts
