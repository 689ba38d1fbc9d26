"""Finds the saved contexts that a change of flags affects, and the expectations that it breaks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import inf

from django.db.models import Q
from django.utils import timezone

from groups.access import Caller
from playground.comparison.compare import CHANGES, Result
from playground.comparison.draft import DraftState
from playground.comparison.states import StatePair, Stored, add_children
from playground.comparison.who_changes import Budget, Contexts, WhoChanges, find_differing
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.saved_contexts.expectations import (
    ChangedExpectation,
    Checked,
    compare_expectations,
    describe_shares,
    list_expectations,
)
from projects.drafts import FlagEdit, NewFlagEdit
from projects.revision import read_revisions

Instead = Mapping[str, SavedContext]
"""Saved contexts in changed form, by name, in place of the stored ones."""
NOTHING: Instead = {}
MAX_CONTEXTS = 1_000
MAX_NAMED = 10
MAX_DRAFTS = 20
MAX_RESULTS = 200_000
"""Flags times compared saved contexts; expectations are checked for all flags."""

UNLIMITED = Budget(seconds=inf)
"""Saving a form must not be refused because a comparison takes long."""


@dataclass(frozen=True, slots=True)
class SavedChange:
    """A saved context whose result for a flag changes."""

    saved: SavedContext
    flag: str
    environment: str
    before: Result
    after: Result

    @property
    def words(self) -> tuple[str, str]:
        return describe_shares(self.before.shares), describe_shares(self.after.shares)


@dataclass(frozen=True, slots=True)
class SavedEffects:
    """``who`` are the ids of the saved contexts whose result changes; ``changes`` has the first, flag by flag.

    ``broken`` are expectations that would no longer be met, ``mended`` those that would be met again.
    """

    who: frozenset[int] = frozenset()
    changes: tuple[SavedChange, ...] = ()
    broken: tuple[Checked, ...] = ()
    mended: tuple[Checked, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.who or self.broken or self.mended)

    def __add__(self, other: SavedEffects) -> SavedEffects:
        """Merges the effects of two edits. An expectation that both affect counts once."""
        changes = {
            (change.saved.pk, change.flag, change.environment): change
            for change in other.changes + self.changes
        }
        return SavedEffects(
            self.who | other.who,
            tuple(islice(changes.values(), MAX_NAMED)),
            _unite(self.broken, other.broken),
            _unite(self.mended, other.mended),
        )


def _unite(some: Iterable[Checked], others: Iterable[Checked]) -> tuple[Checked, ...]:
    united: dict[tuple[int, str, str], Checked] = {}
    for check in (*some, *others):
        expectation = check.expectation
        united.setdefault((expectation.saved.pk, expectation.flag, expectation.environment), check)
    return tuple(united.values())


def find_effects(
    caller: Caller,
    before: Snapshot,
    after: Snapshot,
    *,
    flags: Collection[str] | None = None,
    instead: Instead = NOTHING,
) -> SavedEffects:
    """Finds the effects of another state of an environment on the saved contexts that the caller may read.

    ``flags``: the differing ones with their children; None to search for them. At most five queries, one if there are
    no saved contexts.
    """
    projects = {project for state in (before, after) for project in state.sizes}
    return _find_effects(caller, list(list_saved(caller, projects, instead)), before, after, flags)


def predict_effects(caller: Caller, edits: Iterable[FlagEdit | NewFlagEdit]) -> SavedEffects:
    """Predicts the effects of unsaved edits in projects that the caller may read.

    With very many edits, flags with expectations come first, and others may be left out.
    """
    groups: dict[tuple[str, str, int], list[FlagEdit]] = {}
    for edit in edits:
        if isinstance(edit, FlagEdit):
            groups.setdefault((edit.project, edit.environment, id(edit.draft)), []).append(edit)
    saved = list(list_saved(caller, {project for project, _, _ in groups}))
    if not saved:
        return SavedEffects()
    expected = {
        (expectation["flag"], expectation["environment"])
        for context in saved
        for expectation in context.expectations
    }
    ordered = sorted(
        groups.values(),
        key=lambda group: not any((edit.flag, edit.environment) in expected for edit in group),
    )
    effects = SavedEffects()
    for group in ordered[:MAX_DRAFTS]:
        [first, *_] = group
        states = Stored(first.environment), DraftState(first.environment, first.draft)
        pair = StatePair(read_revisions([first.project]), *states)
        flags = add_children({edit.flag for edit in group}, pair.snapshots)
        effects += _find_effects(caller, saved, *pair.snapshots, flags)
    return effects


def _find_effects(
    caller: Caller,
    saved: list[SavedContext],
    before: Snapshot,
    after: Snapshot,
    flags: Collection[str] | None,
) -> SavedEffects:
    if not saved:
        return SavedEffects()
    now = timezone.now()
    names = find_differing(before, after) if flags is None else sorted(flags)
    contexts = [Context(context.context).at(now) for context in saved]
    who = WhoChanges(before, after, Contexts(contexts), names[: MAX_RESULTS // len(saved)], budget=UNLIMITED)
    examples = (example for flag in who.flags for example in who.examples(flag, CHANGES, limit=MAX_NAMED))
    changes = (
        SavedChange(saved[example.position], example.flag, before.environment, example.before, example.after)
        for example in examples
    )
    expectations = _find_changed(caller, saved, before, after, set(names))
    return SavedEffects(
        frozenset(saved[position].pk for position in who.affected_positions()),
        tuple(islice(changes, MAX_NAMED)),
        broken=tuple(change.after for change in expectations if change.is_broken),
        mended=tuple(change.after for change in expectations if not change.is_broken),
    )


def list_saved(
    caller: Caller, projects: Collection[str], instead: Instead = NOTHING
) -> Iterator[SavedContext]:
    """Yields the saved contexts of the projects and of no project, those with expectations first."""
    usable = SavedContext.objects.readable_by(caller).usable_in(*projects)
    for saved in usable.alias(expects=~Q(expectations=[])).order_by("-expects", "name")[:MAX_CONTEXTS]:
        yield instead.get(saved.name, saved)


def list_expected_flags(caller: Caller) -> set[str]:
    """The flags named in expectations of saved contexts that the caller may read. One query."""
    expecting = (
        SavedContext.objects.readable_by(caller)
        .exclude(expectations=[])
        .values_list("expectations", flat=True)
    )
    return {expectation["flag"] for expectations in expecting[:MAX_CONTEXTS] for expectation in expectations}


def find_changed_expectations(
    caller: Caller,
    before: Snapshot,
    after: Snapshot,
    flags: Collection[str],
    *,
    projects: Collection[str] = (),
    instead: Instead = NOTHING,
) -> list[ChangedExpectation]:
    """Finds the expectations of these flags that the other state changes, in saved contexts that the caller may read.

    Looks in the states' projects, and in further ``projects`` if the states do not have all of their flags. Returns
    nothing if the states belong to two environments. At most four queries.
    """
    if before.environment != after.environment:
        return []
    projects = {*projects, *before.sizes, *after.sizes}
    return _find_changed(caller, list(list_saved(caller, projects, instead)), before, after, set(flags))


def _find_changed(
    caller: Caller, saved: list[SavedContext], before: Snapshot, after: Snapshot, flags: set[str]
) -> list[ChangedExpectation]:
    environment = before.environment
    expecting = [
        context
        for context in saved
        if any(expectation["flag"] in flags for expectation in context.expectations)
    ]
    if not expecting:
        return []
    expected = list_expectations(caller, environments=[environment], contexts=expecting, flags=flags)
    states = {environment: before}, {environment: after}
    return compare_expectations(expected, *states, now=timezone.now())
