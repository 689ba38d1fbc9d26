"""The share of people for whom a flag was on, from the versions of everything that decides it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q

from playground.comparison.people import measure_share_on
from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definitions import Definitions
from projects.flags.lists.people import People
from projects.flags.lists.strategy_lines import calculate_share
from projects.models import Flag
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

MAX_MOMENTS = 120
"""Moments at which shares are measured, in all environments together; the latest ones count."""
MIN_MOMENTS = 8
"""The same in each environment, if there are many."""


class Span(NamedTuple):
    """A time in which a flag was on for the same share of people. None: it did not exist, or nothing is known."""

    begin: datetime
    end: datetime
    people: People | None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The versions of a flag, its parents, and the segments that they used, that were valid after a moment."""

    flags: Sequence[FlagVersion]
    parents: Sequence[DependencyVersion]
    places: Sequence[FlagEnvironmentVersion]
    strategies: Sequence[StrategyVersion]
    links: Sequence[StrategySegmentVersion]
    segments: Sequence[SegmentVersion]


def read_spans(
    flag: Flag, environments: Sequence[str], since: datetime, now: datetime
) -> dict[str, list[Span]]:
    """The spans of each environment from ``since`` to ``now``, oldest first. Seven queries.

    Of more changes than are measured, the oldest count as unknown.
    """
    known = VersionsSince.objects.values_list("since", flat=True).first()
    begin, rows = max(since, known or since), _read_rows(flag, since)
    most = max(MIN_MOMENTS, MAX_MOMENTS // max(1, len(environments)))
    spans = {}
    for environment in environments:
        moments = [
            begin,
            *sorted(moment for moment in _list_moments(rows, environment) if begin < moment < now),
        ]
        measured = moments[-most:]
        people = [_measure(flag, rows, environment, moment) for moment in measured]
        ends = [*measured[1:], now]
        spans[environment] = list(_join(map(Span, measured, ends, people)))
    return spans


def _read_rows(flag: Flag, since: datetime) -> _Rows:
    valid = Q(valid_to__gt=since)
    parents = list(DependencyVersion.objects.filter(valid, flag_id=flag.pk).order_by("id"))
    ids = [flag.pk, *{row.parent_id for row in parents}]
    strategies = list(StrategyVersion.objects.filter(valid, flag_id__in=ids).order_by("sort_order", "id"))
    links = list(
        StrategySegmentVersion.objects.filter(valid, strategy_id__in={row.id for row in strategies})
        if strategies
        else ()
    )
    segments = {row.segment_id for row in links}
    return _Rows(
        list(FlagVersion.objects.filter(valid, id__in=ids)),
        parents,
        list(FlagEnvironmentVersion.objects.filter(valid, flag_id__in=ids)),
        strategies,
        links,
        list(SegmentVersion.objects.filter(valid, id__in=segments)) if segments else [],
    )


def _list_moments(rows: _Rows, environment: str) -> set[datetime]:
    """When anything changed that decides the flag there."""
    strategies = [row for row in rows.strategies if row.environment_id == environment]
    ids = {row.id for row in strategies}
    deciding: list[Version] = [
        *rows.flags,
        *rows.parents,
        *rows.segments,
        *strategies,
        *(row for row in rows.places if row.environment_id == environment),
        *(row for row in rows.links if row.strategy_id in ids),
    ]
    return {row.valid_from for row in deciding} | {row.valid_to for row in deciding if row.valid_to < NEVER}


def _measure(flag: Flag, rows: _Rows, environment: str, at: datetime) -> People | None:
    read = _read_state(rows, environment, at)
    definition = read.by_name().get(flag.name)
    if definition is None:
        exists = any(row.id == flag.pk for row in _valid(rows.flags, at))  # it was archived
        return People(0, 0, 0) if exists else None
    return measure_flag(environment, read, definition)


def measure_flag(environment: str, read: Definitions, definition: FlagDefinition) -> People:
    """The share of people who have a flag of this state. Evaluates nothing if it is what its one strategy says."""
    if not definition["enabled"]:
        return People(0, 0, 0)
    enabled = [strategy for strategy in definition["strategies"] if not strategy["disabled"]]
    if not definition["strategies"] and not definition["dependencies"]:
        return People(100, 0, 0)
    if len(enabled) == 1 and not definition["dependencies"]:  # most flags: nothing to evaluate
        [only] = enabled
        share = calculate_share(only["name"], only["parameters"])
        if share is not None and not only["constraints"] and not only["segments"]:
            return People(share, 0, 0)
    return measure_share_on(environment, read, [definition["name"]])[definition["name"]]


def _read_state(rows: _Rows, environment: str, at: datetime) -> Definitions:
    """The flag and its parents at a moment; without archived ones."""
    names = {row.id: row.name for row in _valid(rows.flags, at)}
    links: dict[Any, list[int]] = defaultdict(list)
    for link in _valid(rows.links, at):
        links[link.strategy_id].append(link.segment_id)
    places = {row.flag_id: row for row in _valid(rows.places, at) if row.environment_id == environment}
    strategies: dict[int, list[Any]] = defaultdict(list)
    for row in _valid(rows.strategies, at):
        if row.environment_id == environment:
            document = make_strategy_document(row, id=str(row.id), segments=links[row.id])
            strategies[row.flag_id].append(document)
    parents: dict[int, list[Any]] = defaultdict(list)
    for row in _valid(rows.parents, at):
        parent = {"feature": names.get(row.parent_id), "enabled": row.enabled, "variants": row.variants}
        parents[row.flag_id].append(parent)
    flags: list[FlagDefinition] = [
        {
            "name": row.name,
            "project": row.project_id,
            "enabled": bool(places.get(row.id) and places[row.id].enabled),
            "impression_data": row.impression_data,
            "stale": row.stale,
            "variants": places[row.id].variants if row.id in places else [],
            "strategies": strategies[row.id],
            "dependencies": parents[row.id],
        }
        for row in _valid(rows.flags, at)
        if row.archived_at is None
    ]
    segments: dict[int, SegmentDefinition] = {
        row.id: {"id": row.id, "name": row.name, "constraints": row.constraints}
        for row in _valid(rows.segments, at)
    }
    return Definitions(sorted(flags, key=lambda each: each["name"]), segments)


def _valid(rows: Iterable[Any], at: datetime) -> Iterator[Any]:
    return (row for row in rows if row.valid_from <= at < row.valid_to)


def _round(people: People | None) -> tuple[float, float] | None:
    """The shares as they are shown, whether they were measured or read from the one strategy."""
    return None if people is None else (round(people.on, 1), round(people.unknown, 1))


def _join(spans: Iterable[Span]) -> Iterator[Span]:
    """Joins successive spans with the same share."""
    last: Span | None = None
    for span in spans:
        if last is not None and _round(last.people) == _round(span.people):
            last = last._replace(end=span.end)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last
