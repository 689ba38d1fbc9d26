"""The changes of a time, by how many generated users of one environment noticed them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from flagadmin.core.audit.models import AuditEvent, AuditEvents
from groups.access import Caller
from projects.history.changes import GroupedChange, change_page, find_counts
from projects.history.queries import TYPES, readable_events
from projects.models import UsersChanged

MAX_EVENTS = 2_000
"""The newest events that are read."""
MAX_CHANGES = 200
"""The newest changes that are shown."""


class Effect(NamedTuple):
    """The users, among ``generated`` ones, whose result a change changed: those of its flag with the most.

    None: not counted, such as a segment's, or none although conditions cannot be measured. ``kind``: what happened to
    most of them: "on", "off" or "other".
    """

    users: int | None
    generated: int = 0
    kind: str = "other"

    @property
    def percent(self) -> float:
        return round(100 * (self.users or 0) / self.generated, 2) if self.generated else 0.0


class NoticedChange(NamedTuple):
    change: GroupedChange
    effect: Effect

    @property
    def event(self) -> AuditEvent:
        return self.change.event


class Happened(NamedTuple):
    """``changes``: the newest ones that users noticed, or whose users are not counted. ``total`` counts all.

    ``is_cut``: whether there may be more.
    """

    changes: Sequence[NoticedChange]
    total: int
    is_cut: bool


NOTHING = Effect(0)


def read_happened(
    events: AuditEvents, environment: str, *, everything: bool = False, caller: Caller
) -> Happened:
    """``events`` come from ``readable_events`` and may be filtered. About ten queries.

    ``everything``: also the changes that no user noticed.
    """
    here = Q(environment=environment) | Q(environment=None)
    deciding = events.filter(here, type__in=TYPES).newest_first()
    rows = list(deciding.only("feature", "created_at", "request_id")[:MAX_EVENTS])
    effects = _find_effects(rows, environment)
    shown = [row.pk for row in rows if everything or effects[row.created_at] != NOTHING]
    page = change_page(readable_events(caller).filter(pk__in=shown), caller=caller, size=MAX_CHANGES)
    changes = [NoticedChange(change, _find_effect(change, effects)) for change in page.changes]
    total = len({row.request_id or row.pk for row in rows})
    return Happened(changes, total, page.next is not None or len(rows) == MAX_EVENTS)


def _find_effects(events: Iterable[AuditEvent], environment: str) -> dict[datetime, Effect]:
    """The largest effect of the events of each transaction, which have the same time."""
    listed = list(events)
    counted = find_counts(listed)
    effects: dict[datetime, Effect] = {}
    for event in listed:
        row = counted.get(event.pk)
        effect = Effect(None) if row is None else _read_effect(row, environment)
        effects[event.created_at] = _choose(effects.get(event.created_at, NOTHING), effect)
    return effects


def _read_effect(row: UsersChanged, environment: str) -> Effect:
    place = next((each for each in row.places if each["environment"] == environment), None)
    if place is None:
        return Effect(None) if row.more else NOTHING
    if place["changed"] == 0:
        return Effect(None) if place["unmeasured"] else NOTHING
    on, off = (place["changes"].get(key, 0) for key in ("offToOn", "onToOff"))
    other = (place["changed"] or 0) - on - off
    most = max((on, "on"), (off, "off"), (other, "other"))
    return Effect(place["changed"], place["users"], most[1])


def _choose(one: Effect, other: Effect) -> Effect:
    """The one with more users; not counted before none."""
    return max(one, other, key=lambda effect: (effect.users or 0, effect.users is None))


def _find_effect(change: GroupedChange, effects: Mapping[datetime, Effect]) -> Effect:
    found = NOTHING
    for event in (change.event, *(row.event for row in change.rows)):
        found = _choose(found, effects.get(event.created_at, NOTHING))
    return found
