"""The share of people for whom a flag was on, from the versions of everything that decides it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from playground.comparison.people import measure_share_on
from playground.engine.definitions import FlagDefinition
from projects.definitions import Definitions
from projects.flag_versions import FlagVersions
from projects.flags.lists.people import People
from projects.flags.lists.strategy_lines import calculate_share
from projects.models import Flag

MAX_MOMENTS = 120
"""Moments at which shares are measured, in all environments together; the latest ones count."""
MIN_MOMENTS = 8
"""The same in each environment, if there are many."""


class Span(NamedTuple):
    """A time in which a flag was on for the same share of people. None: it did not exist, or nothing is known."""

    begin: datetime
    end: datetime
    people: People | None


def read_spans(
    flag: Flag, environments: Sequence[str], since: datetime, now: datetime
) -> dict[str, list[Span]]:
    """The spans of each environment from ``since`` to ``now``, oldest first.

    Seven queries, and one for each evaluated state with other segments than the one before.

    Of more changes than are measured, the oldest count as unknown.
    """
    versions = FlagVersions([flag.pk], since)
    most = max(MIN_MOMENTS, MAX_MOMENTS // max(1, len(environments)))
    spans = {}
    for environment in environments:
        moments = [moment for moment in versions.list_moments(flag.pk, environment) if moment < now]
        measured = [versions.known_since, *moments][-most:]
        people = [_measure(flag, versions, environment, moment) for moment in measured]
        spans[environment] = list(join_spans(map(Span, measured, [*measured[1:], now], people)))
    return spans


def _measure(flag: Flag, versions: FlagVersions, environment: str, at: datetime) -> People | None:
    definition = versions.read([flag.pk], environment, at, with_segments=False).by_name().get(flag.name)
    if definition is None:  # it was archived
        return People(0, 0, 0) if versions.existed(flag.pk, at) else None
    if plain := find_plain_share(definition):
        return plain
    return measure_share_on(environment, versions.read([flag.pk], environment, at), [flag.name])[flag.name]


def measure_flag(environment: str, read: Definitions, definition: FlagDefinition) -> People:
    """The share of people who have a flag of this state. Evaluates nothing if it is what its one strategy says."""
    plain = find_plain_share(definition)
    return plain or measure_share_on(environment, read, [definition["name"]])[definition["name"]]


def find_plain_share(definition: FlagDefinition) -> People | None:
    """The share that the one strategy of the flag sets for everyone; None if an evaluation has to tell."""
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
    return None


def _round(people: People | None) -> tuple[float, float] | None:
    """The shares as they are shown, whether they were measured or read from the one strategy."""
    return None if people is None else (round(people.on, 1), round(people.unknown, 1))


def join_spans(spans: Iterable[Span]) -> Iterator[Span]:
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
