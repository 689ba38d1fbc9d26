"""Counts the generated users affected by the change that an event describes."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.transactions import consistent_reads
from playground.comparison.compare import CHANGES, SWITCHES, Change
from playground.comparison.versions import ChangedPlace, Version, find_version_changes
from projects.history.rewind import TYPES
from projects.models import Environment, Flag

USERS = 10_000


@dataclass(frozen=True, slots=True)
class Effect:
    """``places``: the environments that the change may concern; ``more``: how many were not compared."""

    places: tuple[ChangedPlace, ...] = ()
    more: int = 0

    def within(self, environments: Collection[str] | None) -> "Effect":
        """Returns the effect in these environments only; None means all."""
        if environments is None:
            return self
        return Effect(tuple(place for place in self.places if place.environment in environments), self.more)

    @property
    def is_nothing(self) -> bool:
        """Whether certainly no user gets anything else."""
        return not self.more and all(
            place.counts is not None and not any(place.counts.values()) for place in self.places
        )

    def sentence(self) -> str:
        """``In production, 4,012 of 10,000 generated users go off → on.`` "" if there is nothing to say."""
        return " ".join(filter(None, map(_say, self.places)))

    def documents(self) -> list[dict[str, Any]]:
        return [
            {
                "environment": place.environment,
                "users": USERS,
                "changed": None if place.counts is None else place.changed,
                "changes": {change.value: number for change, number in (place.counts or {}).items()},
            }
            for place in self.places
        ]


def _say(place: ChangedPlace) -> str:
    if place.counts is None:
        return f"In {place.environment}, there are too many values in conditions to count who changes."
    parts = [
        f"{number:,} go {_say_where(change)}" for change, number in place.counts.items() if change in CHANGES
    ]
    if not parts:
        return ""
    first, *others = parts
    first = first.replace(" go ", f" of {USERS:,} generated users go ", 1)
    return f"In {place.environment}, {', '.join([first, *others])}."


def _say_where(change: Change) -> str:
    return change.words if change in SWITCHES else f"to {change.words}"


@consistent_reads()
def find_effect(event: AuditEvent) -> Effect | None:
    """None if it is not known: the event is about no flag, or about one that has been deleted. About ten queries."""
    if event.feature is None or (flag := Flag.objects.filter(name=event.feature).first()) is None:
        return None
    if event.type not in TYPES:
        return Effect()
    version = Version(event.pk, event.pk, event.created_at)
    changes = find_version_changes(flag, [version], users=USERS)[version]
    return Effect(changes.places, changes.more)


def list_production_names() -> frozenset[str]:
    return frozenset(Environment.objects.production().values_list("name", flat=True))
