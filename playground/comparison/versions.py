"""Compares what generated users got before and after each version of a flag, as everything was then."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import connection

from flagadmin.core.byte_cache import ByteCache
from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from playground.comparison.compare import CHANGES, Change
from playground.comparison.impact import BUDGET, MAX_VALUES, count_values
from playground.comparison.states import compile_definitions
from playground.comparison.who_changes import WhoChanges, generate_users
from playground.engine.definitions import FlagDefinition
from projects.definition_parts import read_segments
from projects.definitions import Definitions, find_used_segments, read_all_definitions
from projects.history.flag_parts import NOTHING, in_environments
from projects.history.rewind import Back, PastEvent
from projects.history.versions import FlagBack, FlagEvent, read_events_since, read_present_version
from projects.models import Environment, Flag, OutsideChange

USERS = 1_000
MAX_PLACES = 4
"""Environments in which a version is compared."""


@dataclass(frozen=True, slots=True)
class Version:
    """The effect of one change on a flag: its events from ``first`` to ``last``, at ``at``."""

    first: int
    last: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """The number of users whose result changed in an environment; None if conditions have too many values to count."""

    environment: str
    counts: Mapping[Change, int] | None

    @property
    def changed(self) -> int:
        return sum((self.counts or {}).get(change, 0) for change in CHANGES)


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """The environments in which the version may have changed somebody; ``more`` are not compared."""

    places: tuple[ChangedPlace, ...]
    more: int

    @property
    def nbytes(self) -> int:
        return 500 + 1_000 * len(self.places)


class _Place(NamedTuple):
    """A version to compare in an environment."""

    version: Version
    environment: str


Key = tuple[int, int, int, int, int]

cache = ByteCache[Key, VersionChanges]()
"""By flag, first and last event, the last change without an event, which may change the past, and number of users."""


def find_version_changes(
    flag: Flag, versions: Sequence[Version], *, users: int = USERS
) -> dict[Version, VersionChanges]:
    """Finds the users whom these versions changed. About nine queries and 20 ms for each version that is not cached."""
    outside = (
        OutsideChange.objects.filter(project_id=flag.project_id).order_by("-pk").values_list("pk", flat=True)
    )
    last_outside = outside.first() or 0

    def make_key(version: Version) -> Key:
        return flag.pk, version.first, version.last, last_outside, users

    changes_by_version = {
        version: known for version in versions if (known := cache.get(make_key(version))) is not None
    }
    new = sorted({*versions} - changes_by_version.keys(), key=lambda version: -version.last)
    if new:
        with consistent_reads():
            new_changes = _compute(flag, new, users)
        for version, changes in new_changes.items():
            cache.put(make_key(version), changes, limit=settings.SNAPSHOT_CACHE_BYTES // 64)
        changes_by_version |= new_changes
    return changes_by_version


def _compute(flag: Flag, versions: Sequence[Version], users: int) -> dict[Version, VersionChanges]:
    """``versions`` are the newest first."""
    since = min(version.first for version in versions) - 1
    back = FlagBack(read_present_version(flag), events := read_events_since([flag.name], event=since))
    sides: dict[Version, list[Document | None]] = {version: [] for version in versions}
    for version in _walk_back(back.undo, events, versions):
        sides[version].append(back.version())
    order = [name for name in Environment.objects.names() if name in set(_list_used(flag))]
    places = {
        version: [name for name in order if _may_differ(name, *reversed(documents))]
        for version, documents in sides.items()
    }
    names = {flag.name, *_list_parents(side for documents in sides.values() for side in documents)}
    wanted = {version: environments[:MAX_PLACES] for version, environments in places.items()}
    changed = _compare_versions(flag.name, names, since, wanted, users)
    return {
        version: VersionChanges(
            tuple(ChangedPlace(name, changed[_Place(version, name)]) for name in wanted[version]),
            len(places[version]) - len(wanted[version]),
        )
        for version in versions
    }


def _walk_back(
    take: Callable[[PastEvent], None], events: Sequence[FlagEvent], versions: Iterable[Version]
) -> Iterator[Version]:
    """Takes events back and stops twice at each version: after it, then before it."""
    left = iter(events)
    event = next(left, None)
    for version in versions:
        for bound in (version.last + 1, version.first):
            while event is not None and event.id >= bound:
                take(event.event)
                event = next(left, None)
            yield version


def _list_used(flag: Flag) -> Iterable[str]:
    return flag.project.environments.values_list("name", flat=True)


def _may_differ(environment: str, before: Document | None, after: Document | None) -> bool:
    """Whether the flag was on in at least one side, and not the same in both."""
    old, new = (
        in_environments(side).get(environment, NOTHING)
        if side is not None and not side["archived"]
        else NOTHING
        for side in (before, after)
    )
    if not (old["enabled"] or new["enabled"]):
        return False
    parents = [side["dependencies"] if side else [] for side in (before, after)]
    return old != new or parents[0] != parents[1]


def _list_parents(sides: Iterable[Document | None]) -> Iterator[str]:
    for side in sides:
        yield from (parent["feature"] for parent in (side["dependencies"] if side else ()))


def _compare_versions(
    flag: str, names: Iterable[str], since: int, wanted: Mapping[Version, Sequence[str]], users: int
) -> dict[_Place, Mapping[Change, int] | None]:
    names = list(names)
    environments = dict.fromkeys(name for places in wanted.values() for name in places)
    events = read_events_since(names, event=since, segments=True) if environments else []
    changes_by_place = {}
    for environment in environments:
        versions = [version for version, places in wanted.items() if environment in places]
        for version, states in _read_states(environment, names, events, versions).items():
            changes_by_place[_Place(version, environment)] = _count_changes(
                flag, environment, version, states, users
            )
    return changes_by_place


def _read_states(
    environment: str, names: Sequence[str], events: Sequence[FlagEvent], versions: Sequence[Version]
) -> dict[Version, list[Definitions]]:
    """The flags after and before each version, with their segments, in one environment."""
    back = Back(environment, read_all_definitions(environment, names).flags)
    states: dict[Version, list[Definitions]] = {version: [] for version in versions}
    for version in _walk_back(back.undo, events, versions):
        flags = back.active({flag["project"] for flag in back.flags.values()})
        states[version].append(
            Definitions([_copy(flag) for flag in flags if flag["name"] in names], dict(back.segments))
        )
    used = {
        segment for both in states.values() for state in both for segment in find_used_segments(state.flags)
    }
    with connection.cursor() as cursor:
        stored = read_segments(cursor, used)
    # Segments are as they were, if they have changed since, else as they are stored.
    return {
        version: [Definitions.of(state.flags, stored | state.segments) for state in both]
        for version, both in states.items()
    }


def _copy(flag: FlagDefinition) -> FlagDefinition:
    """Strategies change in place on the way further back."""
    return {**flag, "strategies": [strategy.copy() for strategy in flag["strategies"]]}


def _count_changes(
    flag: str, environment: str, version: Version, states: Sequence[Definitions], users: int
) -> Mapping[Change, int] | None:
    new, old = states
    if count_values(old) + count_values(new) > MAX_VALUES:
        return None
    before, after = compile_definitions(environment, old, new)
    contexts = generate_users((old, new), now=version.at, users=users)
    who = WhoChanges(before, after, contexts, [flag], budget=BUDGET)
    return {change: number for change, number in who.counts.items() if change is not Change.NONE and number}
