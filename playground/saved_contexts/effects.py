"""What a change of the flags would do to saved contexts: who changes, by name, and which expectations it breaks."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from django.db.models import Q
from django.utils import timezone

from groups.access import Caller
from playground.comparison.compare import CHANGES, Comparison, Result
from playground.comparison.table import ContextTable
from playground.engine.context import Context
from playground.engine.snapshot import Snapshot
from playground.models import SavedContext
from playground.saved_contexts.expectations import Checked, checked, expectations_of, shares_words
from playground.saved_contexts.queries import visible_contexts

MOST_CONTEXTS = 1_000
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class SavedChange:
    """A saved context that gets something else of a flag."""

    saved: SavedContext
    flag: str
    before: Result
    after: Result

    @property
    def words(self) -> tuple[str, str]:
        return shares_words(self.before.shares), shares_words(self.after.shares)


@dataclass(frozen=True, slots=True)
class SavedEffects:
    """``changed`` saved contexts get something else; ``changes`` has the first of them, flag by flag.

    ``broken`` are expectations that are met and would not be, ``mended`` those that are not met and would be.
    """

    changed: int
    changes: list[SavedChange]
    broken: list[Checked]
    mended: list[Checked]

    def __bool__(self) -> bool:
        return bool(self.changed or self.broken or self.mended)


def broken_by(
    caller: Caller, before: Snapshot, after: Snapshot, *, flags: Collection[str] | None = None
) -> SavedEffects:
    """What saved contexts that the caller may read get in another state of an environment.

    ``flags``: those that differ, with their children; if they are not known, they are searched. Two to four queries,
    none without saved contexts but one.
    """
    now = timezone.now()
    saved = list(_contexts(caller, before, after))
    comparison = Comparison(before, after, ContextTable([Context(each.context).at(now) for each in saved]))
    names = comparison.differing() if flags is None else sorted(flags)
    if not saved:
        return SavedEffects(0, [], [], [])
    found = [comparison.flag(name) for name in names]
    changed = 0
    for each in found:
        for change in CHANGES:
            changed |= each.contexts.get(change, 0)
    examples = (one for each in found if each.changed for one in comparison.examples(each, MOST_NAMED))
    named = [
        SavedChange(saved[one.position], one.flag, one.before, one.after)
        for one in islice((one for one in examples if one.change in CHANGES), MOST_NAMED)
    ]
    broken, mended = _expectations(caller, saved, before, after, set(names))
    return SavedEffects(changed.bit_count(), named, broken, mended)


def _contexts(caller: Caller, *states: Snapshot) -> Iterator[SavedContext]:
    """Those of the states' projects and of none, the ones with expectations first."""
    projects = {project for state in states for project in state.sizes}
    found = visible_contexts(caller).filter(Q(project=None) | Q(project_id__in=projects))
    yield from found.alias(expects=~Q(expectations=[])).order_by("-expects", "name")[:MOST_CONTEXTS]


def _expectations(
    caller: Caller, saved: list[SavedContext], before: Snapshot, after: Snapshot, flags: set[str]
) -> tuple[list[Checked], list[Checked]]:
    expecting = [each for each in saved if each.expectations]
    named = {one["flag"] for each in expecting for one in each.expectations}
    if not named & flags:
        return [], []
    environment, now = before.environment, timezone.now()
    expected = expectations_of(caller, environments=[environment], contexts=expecting)
    expected = [one for one in expected if one.flag in flags]
    old = checked(expected, {environment: before}, now=now)
    new = checked(expected, {environment: after}, now=now)
    pairs = list(zip(old, new, strict=True))
    broken = [after for before, after in pairs if before.met and not after.met]
    return broken, [after for before, after in pairs if after.met and not before.met]
