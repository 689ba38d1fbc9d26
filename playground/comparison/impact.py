"""Summarizes the effect of an edit on sample users: how many change, how, and a few examples."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from django.db.models import QuerySet

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from playground.comparison.compare import COUNTED, Example
from playground.comparison.states import compile_definitions
from playground.comparison.unmeasured import find_unmeasured
from playground.comparison.who_changes import Budget, Contexts, FlagChanges, WhoChanges, choose_users
from playground.engine.context import Context
from playground.engine.literals import objects_of
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions, find_used_segments, read_definitions
from projects.drafts import Draft, FlagEdit, NewFlagEdit
from projects.models import Dependency
from projects.states import has_enabled

MAX_EDITS = 10
SAMPLES = (10_000, 5_000, 2_000, 1_000, 500, 200, 100)
"""Numbers of users to generate: with more edits or values in conditions, fewer users."""
MAX_TESTS = 20_000_000
"""Users times values in conditions of both states: about a second."""
MAX_VALUES = 50_000
"""Values in conditions of both states, for computations during typing: half a second to compile."""
MAX_GENERATED = 300
"""Edge cases."""
BUDGET = Budget()
EXAMPLES = 3
MAX_CHILDREN = 3


@dataclass(frozen=True, slots=True)
class Impact:
    """The effect of an edit on one flag in one environment.

    ``who`` compares it for generated users and for edge cases. ``examples`` come from both. ``children`` are dependent
    flags whose result changes, with the number of users. ``is_off``: the flag is off in both states; ``once_on`` is the
    effect of the edit after turning it on. ``unmeasured``: sentences about conditions that generated users cannot
    measure.
    """

    flag: str
    environment: str
    who: WhoChanges
    changes: FlagChanges
    examples: Sequence[tuple[Context, Example]]
    children: Sequence[tuple[str, int]]
    is_off: bool = False
    once_on: FlagChanges | None = None
    unmeasured: Sequence[str] = ()


def measure_impacts(
    edits: Sequence[FlagEdit | NewFlagEdit],
    *,
    now: datetime,
    caller: Caller,
    examples: int = EXAMPLES,
    most_values: int | None = None,
) -> list[Impact]:
    """Measures the effect of each of the first edits. Callers must have checked that the projects are readable.

    Raises TooManyValues if conditions have more values than `most_values`.
    """
    edits = edits[:MAX_EDITS]
    read = [_read(edit) for edit in edits]
    values = sum(map(count_values, chain.from_iterable(read)))
    if most_values is not None and values > most_values:
        raise TooManyValues(values)
    most = min(SAMPLES[0] // max(1, len(edits)), MAX_TESTS // max(1, values))
    users = next((size for size in SAMPLES if size <= most), SAMPLES[-1])
    sampling = _Sampling(users, now, examples, caller)
    return [_compare(edit, states, sampling) for edit, states in zip(edits, read, strict=True)]


class TooManyValues(ValidationError):
    """Conditions have too many values to compare during typing."""

    def __init__(self, values: int) -> None:
        super().__init__(f"Conditions with {values:,} values take too long to compare while you type.")


class _Sampling(NamedTuple):
    users: int
    now: datetime
    examples: int
    caller: Caller


def _read(edit: FlagEdit | NewFlagEdit) -> tuple[Definitions, Definitions]:
    """The flag and related ones, in both states: equally few in small and large projects."""
    if isinstance(edit, NewFlagEdit):
        flags = edit.before, edit.after
        read = read_definitions(
            [edit.project], edit.environment, flags=[], segments=find_used_segments(flags)
        )
        segments = read.segments
        return Definitions([edit.before], segments), Definitions([edit.after], segments)
    near = [edit.flag, *_list_children(edit)]
    names, used = {*near, *_list_parents(edit, near)}, set(edit.draft.used_segments())
    stored = read_definitions([edit.project], edit.environment, flags=names, segments=used)
    return stored, edit.draft.apply_to(stored)


def count_values(read: Definitions) -> int:
    """Counts the values in conditions."""
    strategies = (strategy for flag in read.flags for strategy in flag["strategies"])
    lists = (objects_of(each["constraints"]) for each in chain(strategies, read.segments.values()))
    values = (constraint.get("values") for constraint in chain.from_iterable(lists))
    return sum(1 + (len(listed) if isinstance(listed, list) else 0) for listed in values)


def _compare(
    edit: FlagEdit | NewFlagEdit, states: tuple[Definitions, Definitions], sampling: _Sampling
) -> Impact:
    name = edit.before["name"] if isinstance(edit, NewFlagEdit) else edit.flag
    contexts = choose_users(
        sampling.caller, states, now=sampling.now, users=sampling.users, made=MAX_GENERATED
    )
    before, after = compile_definitions(edit.environment, *states)
    who = WhoChanges(before, after, contexts, [name], budget=BUDGET, always=[name])
    [changes] = who.flags
    children = map(who.compare, _find_children(before, name)) if changes.users else ()
    return Impact(
        flag=name,
        environment=edit.environment,
        who=who,
        changes=changes,
        examples=list(_pick_examples(who, changes, sampling.examples)),
        children=[(child.name, child.users) for child in children if child.users],
        is_off=_is_off(name, states),
        once_on=_turn_on(edit, states, before, contexts),
        unmeasured=[each.sentence for each in find_unmeasured(who, *states)],
    )


def _is_off(name: str, states: tuple[Definitions, Definitions]) -> bool:
    flags = [flag for state in states for flag in state.flags if flag["name"] == name]
    return len(flags) == len(states) and not any(flag["enabled"] for flag in flags)


def _turn_on(
    edit: FlagEdit | NewFlagEdit,
    states: tuple[Definitions, Definitions],
    before: Snapshot,
    contexts: Contexts,
) -> FlagChanges | None:
    """Computes the effect of editing a flag's strategies, variants or parents after turning it on. Returns None if it
    is already on, or has no strategy, so that turning it on would add one.
    """
    if isinstance(edit, NewFlagEdit) or not edit.draft.changes or not _is_off(edit.flag, states):
        return None
    draft = Draft(edit.flag, {"enabled": True})
    [flag] = [flag for flag in states[1].flags if flag["name"] == edit.flag]
    if not has_enabled(flag["strategies"]):
        return None
    _, on = compile_definitions(edit.environment, states[0], draft.apply_to(states[1]))
    who = WhoChanges(before, on, contexts, [edit.flag], budget=BUDGET, always=[edit.flag])
    return who.flags[0]


def _find_children(snapshot: Snapshot, name: str) -> Iterator[str]:
    """The flags that depend on the given one."""
    return (flag.name for flag in snapshot.flags if any(parent.name == name for parent in flag.parents))


def _list_children(edit: FlagEdit) -> QuerySet[Dependency, str]:
    rows = Dependency.objects.filter(
        parent__name=edit.flag, flag__project=edit.project, flag__archived_at=None
    )
    on = rows.filter(flag__environments__environment=edit.environment, flag__environments__enabled=True)
    return on.order_by("flag__name").values_list("flag__name", flat=True)[:MAX_CHILDREN]


def _list_parents(edit: FlagEdit, names: Iterable[str]) -> Iterator[str]:
    """The parents of the flag and of its children, including those that the edit would add."""
    yield from (parent["feature"] for parent in edit.draft.changes.get("dependencies", ()))
    rows = Dependency.objects.filter(flag__name__in=names, flag__project=edit.project)
    yield from rows.values_list("parent__name", flat=True)


def _pick_examples(who: WhoChanges, flag: FlagChanges, limit: int) -> Iterator[tuple[Context, Example]]:
    """Some contexts of each change, without duplicates."""
    kinds = [change for change in COUNTED if flag.for_everyone.count(change)]
    room = dict.fromkeys(kinds, -(-limit // max(1, len(kinds))))
    seen = set()
    for example in who.examples(flag, limit_each=5 * max(room.values(), default=0)):
        context = flag.source.table.contexts[example.position]
        values = example.change, frozenset(context.fields.items())
        if room[example.change] and limit and values not in seen:
            room[example.change] -= 1
            limit -= 1
            seen.add(values)
            yield context, example
