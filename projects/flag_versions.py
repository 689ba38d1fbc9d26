"""The versions of flags, with their parents and segments, read once for many moments and all environments."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Q
from django.utils.functional import cached_property

from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definitions import Definitions
from projects.models.versions import (
    NEVER,
    DependencyVersion,
    FlagEnvironmentVersion,
    FlagVersion,
    SegmentVersion,
    StrategySegmentVersion,
    StrategyVersion,
    Version,
    VersionsSince,
)
from projects.strategies.fields import make_strategy_document

Row = TypeVar("Row", bound=Version)
MAX_SEGMENT_VERSIONS = 5_000
"""Past ones of the segments of all the flags; the latest ones count."""


class FlagVersions:
    """The versions of these flags that were valid after a moment. Six queries for any number of flags.

    Nothing is known before ``known_since``. The conditions of segments may be large, so they are read for one moment
    at a time.
    """

    def __init__(self, ids: Iterable[int], since: datetime) -> None:
        valid, own = Q(valid_to__gt=since), list(ids)
        self.since = since
        self._parents = _group(DependencyVersion.objects.filter(valid, flag_id__in=own).order_by("id"))
        parents = {row.parent_id for rows in self._parents.values() for row in rows}
        everyone = [*own, *parents.difference(own)]
        self._flags = _group(FlagVersion.objects.filter(valid, id__in=everyone), "id")
        self._places = _group(FlagEnvironmentVersion.objects.filter(valid, flag_id__in=everyone))
        strategies = StrategyVersion.objects.filter(valid, flag_id__in=everyone)
        self._strategies = _group(strategies.order_by("sort_order", "id"))
        strategy_ids = {row.id for rows in self._strategies.values() for row in rows}
        links = StrategySegmentVersion.objects.filter(valid, strategy_id__in=strategy_ids)
        self._links = _group(links if strategy_ids else (), "strategy_id")
        segment_ids = {row.segment_id for rows in self._links.values() for row in rows}
        segments = SegmentVersion.objects.filter(valid, id__in=segment_ids).only(
            "id", "valid_from", "valid_to"
        )
        most = MAX_SEGMENT_VERSIONS + len(segment_ids)  # one version of each is still valid
        newest = list(segments.order_by("-valid_to")[:most] if segment_ids else ())
        self._segments = _group(newest, "id")
        self._segments_since = newest[-1].valid_to if newest and len(newest) == most else since
        self._last_segments: tuple[list[Any], dict[int, SegmentDefinition]] = ([], {})

    @cached_property
    def known_since(self) -> datetime:
        """One query."""
        known = VersionsSince.objects.values_list("since", flat=True).first()
        return max(self.since, self._segments_since, known or self.since)

    def existed(self, flag_id: int, at: datetime) -> bool:
        """Whether the flag existed, maybe archived."""
        return any(True for _ in _valid(self._flags[flag_id], at))

    def list_moments(self, flag_id: int, environment: str) -> list[datetime]:
        """When anything changed that decides the flag there, since ``known_since``, oldest first."""
        moments: set[datetime] = set()
        for row in self._list_deciding(flag_id, environment):
            moments |= {row.valid_from, row.valid_to}
        return sorted(moment for moment in moments if self.known_since < moment < NEVER)

    def list_times(self, flag_id: int, environment: str) -> set[str]:
        """The values of conditions on the time: the answer may change then without a change of the flag."""
        constraints = (
            constraint
            for row in self._list_deciding(flag_id, environment)
            for constraint in getattr(row, "constraints", ())
        )
        return {each.get("value") or "" for each in constraints if each.get("contextName") == "currentTime"}

    def list_parents(self, flag_id: int) -> list[str]:
        """The names of all its parents of that time."""
        parents = dict.fromkeys(row.parent_id for row in self._parents[flag_id])
        return list(dict.fromkeys(row.name for each in parents for row in self._flags[each]))

    def _list_deciding(self, flag_id: int, environment: str) -> Iterator[Version]:
        parents = self._parents[flag_id]
        yield from parents
        for each in dict.fromkeys([flag_id, *(row.parent_id for row in parents)]):
            yield from self._flags[each]
            yield from (row for row in self._places[each] if row.environment_id == environment)
            for strategy in self._strategies[each]:
                if strategy.environment_id == environment:
                    yield strategy
                    for link in self._links[strategy.id]:
                        yield link
                        yield from self._segments[link.segment_id]

    def read(
        self, ids: Iterable[int], environment: str, at: datetime, *, with_segments: bool = True
    ) -> Definitions:
        """These flags and their parents at a moment, without archived ones.

        One query for the segments, unless they were the same at the moment of the last call.
        """
        own = list(ids)
        parents = {row.parent_id for each in own for row in _valid(self._parents[each], at)}
        rows = [row for each in {*own, *parents} for row in _valid(self._flags[each], at)]
        flags = [self._define(row, environment, at) for row in rows if row.archived_at is None]
        used = {key for flag in flags for strategy in flag["strategies"] for key in strategy["segments"]}
        segments = self._read_segments(used, at) if with_segments else {}
        return Definitions(sorted(flags, key=lambda each: each["name"]), segments)

    def _read_segments(self, used: Iterable[int], at: datetime) -> dict[int, SegmentDefinition]:
        valid = [(row.id, row.valid_to) for key in sorted(used) for row in _valid(self._segments[key], at)]
        if valid != self._last_segments[0]:
            ids = [key for key, _ in valid]
            rows = SegmentVersion.objects.filter(id__in=ids, valid_from__lte=at, valid_to__gt=at)
            read = {
                key: SegmentDefinition(id=key, name=name, constraints=constraints)
                for key, name, constraints in rows.order_by("id").values_list("id", "name", "constraints")
            }
            self._last_segments = valid, read
        return self._last_segments[1]

    def _define(self, row: FlagVersion, environment: str, at: datetime) -> FlagDefinition:
        here = (place for place in _valid(self._places[row.id], at) if place.environment_id == environment)
        place = next(here, None)
        strategies = [
            make_strategy_document(
                strategy,
                id=str(strategy.id),
                segments=[link.segment_id for link in _valid(self._links[strategy.id], at)],
            )
            for strategy in _valid(self._strategies[row.id], at)
            if strategy.environment_id == environment
        ]
        dependencies: Any = [
            {"feature": parent.name, "enabled": link.enabled, "variants": link.variants}
            for link in _valid(self._parents[row.id], at)
            for parent in _valid(self._flags[link.parent_id], at)
        ]
        return {
            "name": row.name,
            "project": row.project_id,
            "enabled": bool(place and place.enabled),
            "impression_data": row.impression_data,
            "stale": row.stale,
            "variants": place.variants if place else [],
            "strategies": strategies,
            "dependencies": dependencies,
        }


def _group(rows: Iterable[Row], key: str = "flag_id") -> Mapping[Any, Sequence[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, key)].append(row)
    return groups


def _valid(rows: Iterable[Row], at: datetime) -> Iterator[Row]:
    return (row for row in rows if row.valid_from <= at < row.valid_to)
