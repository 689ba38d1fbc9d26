"""Derives the state of a relay from its last report."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils.timesince import timesince

from projects.models import Relay

MISSED = 3  # reports until a relay counts as silent
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
