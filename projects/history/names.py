"""Looks up names for the ids in audit events."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from flagadmin.core.audit.models import AuditEvent
from projects.history.field_changes import Names
from projects.models import Segment, Strategy


def find_names_in(events: Iterable[AuditEvent]) -> Names:
    """The positions of the strategies and the names of the segments in these events. Two queries."""
    strategies: set[tuple[str, str]] = set()
    segments: set[int] = set()
    for event in events:
        for side in (event.before, event.after):
            if isinstance(side, dict):
                if event.type.startswith("feature-strategy-") and event.feature and event.environment:
                    strategies.add((event.feature, event.environment))
                places = (side, *(side.get("environments") or ()))
                strategy_lists = (
                    place.get("strategies") or () for place in places if isinstance(place, dict)
                )
                for document in (side, *chain.from_iterable(strategy_lists)):
                    if isinstance(document, dict) and isinstance(document.get("segments"), list):
                        segments.update(
                            segment for segment in document["segments"] if isinstance(segment, int)
                        )
    return Names(_number_strategies(strategies), Segment.objects.names(segments))


def _number_strategies(places: set[tuple[str, str]]) -> dict[str, int]:
    """The position of each strategy among those of its flag in its environment, from 1."""
    if not places:
        return {}
    rows = Strategy.objects.filter(
        flag__name__in={flag for flag, _ in places}, environment__in={name for _, name in places}
    )
    numbers_by_place: dict[Any, int] = {}
    numbers = {}
    for pk, *place in rows.order_by("sort_order", "pk").values_list("pk", "flag_id", "environment_id"):
        numbers_by_place[tuple(place)] = numbers[str(pk)] = numbers_by_place.get(tuple(place), 0) + 1
    return numbers
