"""The share of people for whom flags are on: by their conditions, parents and segments, not only their percentages.

The people are the generated users of every form, so that a list and a form show the same number.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from flagadmin.core.caches import BoundedDict
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.http.responses import iso
from playground.comparison.rules import list_sticky_fields, read_conditions
from playground.comparison.states import compile_definitions
from playground.comparison.who_changes import WhoChanges, choose_number_of_users, generate_users
from playground.engine.definitions import FlagDefinition
from playground.engine.outcomes import State
from playground.saved_contexts.effects import UNLIMITED
from playground.saved_contexts.expectations import read_stored_flags
from projects.definitions import Definitions, find_parents
from projects.flags.lists.cells import People, Place
from projects.revision import read_revisions

REMEMBERED = 20_000
_by_revision: BoundedDict[tuple[Place, int], People] = BoundedDict(REMEMBERED)
_by_content: BoundedDict[str, People] = BoundedDict(REMEMBERED)


def measure_people(places: Collection[Place]) -> dict[Place, People]:
    """The shares of these active flags. One query if their projects have not changed since the last time.

    Otherwise, at most fourteen queries for each environment, and 3 ms of CPU time for each flag that has changed, with
    its parents and segments. Many flags share 500,000 results, so they are measured for fewer users.
    """
    if not places:
        return {}
    revisions = read_revisions({project for project, _, _ in places})
    found = {
        place: people
        for place in places
        if (people := _by_revision.get((place, revisions.get(place[0], 0)))) is not None
    }
    missing = [place for place in places if place not in found]
    for environment in sorted({environment for _, environment, _ in missing}):
        chosen = [place for place in missing if place[1] == environment]
        read = read_stored_flags(
            {project for project, _, _ in chosen}, environment, {name for _, _, name in chosen}
        )
        shares = measure_share_on(environment, read, [name for _, _, name in chosen])
        for place in chosen:
            found[place] = people = shares[place[2]]
            if place[0] in revisions and not people.depends_on_time:
                _by_revision[place, revisions[place[0]]] = people
    return found


def measure_share_on(environment: str, read: Definitions, names: Sequence[str]) -> dict[str, People]:
    """The shares of these flags in a state, which includes their parents. Flags that it lacks are off."""
    now, by_name = timezone.now(), read.by_name()
    keys = {name: _make_key(name, by_name, read, environment, now) for name in names}
    found = {name: people for name in names if (people := _by_content.get(keys[name])) is not None}
    missing = [name for name in dict.fromkeys(names) if name not in found]
    if missing:
        [snapshot] = compile_definitions(environment, _without_variants(read))
        users = generate_users((read,), now=now, users=choose_number_of_users(len(missing)))
        who = WhoChanges(snapshot, snapshot, users, missing, budget=UNLIMITED, always=missing)
        for flag in who.flags:
            answers = flag.for_users.before
            unknown = sum(count for answer, count in answers.items() if answer.state is State.UNKNOWN)
            timed = _depends_on_time(_list_parts(flag.name, by_name), read)
            found[flag.name] = _by_content[keys[flag.name]] = People(
                100 * flag.on_before, 100 * float(unknown) / who.users, who.users, timed
            )
    return found


def _without_variants(read: Definitions) -> Definitions:
    """The same flags are on for the same people: only of parents, flags may require a variant. Takes half the time."""
    parents = find_parents(read.flags)
    flags: list[FlagDefinition] = [
        flag
        if flag["name"] in parents
        else {**flag, "variants": [], "strategies": [{**each, "variants": []} for each in flag["strategies"]]}
        for flag in read.flags
    ]
    return Definitions(flags, read.segments)


def depends_on_time(read: Definitions) -> bool:
    """Whether a condition of any of the flags reads the time."""
    return _depends_on_time(read.flags, read)


def _depends_on_time(flags: Iterable[FlagDefinition], read: Definitions) -> bool:
    return any(
        "currentTime"
        in (*list_sticky_fields(flag), *(each.field for each in read_conditions(flag, read.segments)))
        for flag in flags
    )


def _list_parts(name: str, by_name: Mapping[str, FlagDefinition]) -> list[FlagDefinition]:
    """The flag and its parents, as far as they are there."""
    return list(_find_parts(name, by_name)) if name in by_name else []


def _find_parts(name: str, by_name: Mapping[str, FlagDefinition]) -> Iterator[FlagDefinition]:
    yield by_name[name]
    yield from (by_name[parent] for parent in sorted(find_parents([by_name[name]])) if parent in by_name)


def _make_key(
    name: str, by_name: Mapping[str, FlagDefinition], read: Definitions, environment: str, now: datetime
) -> str:
    """Equal for states that give the same share; a condition on the time counts by the minute."""
    parts = Definitions.of(_list_parts(name, by_name), read.segments)
    minute = iso(now.replace(second=0, microsecond=0)) if depends_on_time(parts) else ""
    return hash_document([name, environment, minute, parts.flags, list(parts.segments.items())])
