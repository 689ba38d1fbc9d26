"""Who changes between two states: for each flag how many users get something else, and which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic
from typing import NamedTuple

from flagadmin.core.errors import ValidationError
from playground.comparison.compare import CHANGES, Change, Comparison, Example, FlagComparison
from playground.comparison.contexts import Rules, generated, synthetic
from playground.comparison.shares import Shares
from playground.comparison.table import ContextTable
from playground.engine.context import Context, PointInTime
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from projects.definitions import Definitions

COUNTED = (*CHANGES, Change.UNKNOWN)
MAX_SECONDS = 20
MAX_USERS = 10_000
MAX_GENERATED = 1_000
SHOWN_RESULTS = 400_000
"""Flags times users of a page that chooses the number of users itself: about a second of CPU time."""
FEWEST_USERS = 200
MAX_RARE = 100
"""Flags that change for no user, for which contexts are made."""
Rare = Callable[[list[str]], Sequence[Context]]
"""Contexts made from the rules of these flags."""


class Contexts(NamedTuple):
    """Those who are counted, and contexts that are only there to find changes that nobody among them meets."""

    users: list[Context]
    made: Sequence[Context] = ()


@dataclass(frozen=True, slots=True)
class ChangedFlag:
    """A flag that gives something else. `counts` are users by change, `made` how many of the other contexts change.

    `comparison` is of the contexts of `source`.
    """

    name: str
    project: str
    counts: Mapping[Change, int]
    made: int
    on_before: float
    on_after: float
    comparison: FlagComparison
    source: Comparison

    @property
    def users(self) -> int:
        """Users who get something else."""
        return sum(self.counts[change] for change in CHANGES)

    @property
    def is_known(self) -> bool:
        return bool(self.users or self.made)


class WhoChanges:
    """The flags that give something else in another state, with the most users first."""

    def __init__(
        self,
        comparison: Comparison,
        contexts: Contexts,
        names: Iterable[str],
        *,
        total: int | None = None,
        rare: Rare | None = None,
    ) -> None:
        self.comparison = comparison
        self.contexts = contexts
        self.names = list(names)
        self.total = len(self.names) if total is None else total
        """The flags that there were to compare: perhaps more than the names."""
        self._affected = 0
        self._everyone = (1 << 8 * len(contexts.users)) - 1
        found = {name: self._changed(name, comparison) for name in self._in_time()}
        if rare is not None:
            unseen = [
                name
                for name, flag in found.items()
                if not ((flag and flag.is_known) or comparison.is_same(name))
            ]
            found |= self._rare(unseen[:MAX_RARE], rare)
        self.flags = [flag for flag in found.values() if flag is not None]
        self.flags.sort(key=lambda flag: (-flag.users, -flag.made, flag.name))

    @property
    def users(self) -> int:
        return len(self.contexts.users)

    @property
    def counts(self) -> dict[Change, int]:
        return {change: sum(flag.counts[change] for flag in self.flags) for change in COUNTED}

    @property
    def affected(self) -> int:
        """Users for whom at least one flag changes."""
        return self._affected.bit_count()

    def examples(
        self, flag: ChangedFlag, changes: Sequence[Change], *, limit: int | None = None, start: int = 0
    ) -> Iterator[Example]:
        """Who gets something else, with the reasons; by change, users before other contexts."""
        found = flag.comparison.contexts
        only = replace(flag.comparison, contexts={change: found.get(change, 0) for change in changes})
        return flag.source.examples(only, limit, start)

    def _in_time(self) -> Iterator[str]:
        start = monotonic()
        for done, name in enumerate(self.names):
            if monotonic() - start > MAX_SECONDS:
                raise ValidationError(
                    f"After {MAX_SECONDS} seconds {done:,} of {len(self.names):,} flags were compared. "
                    "Choose a flag, or fewer users."
                )
            yield name

    def _rare(self, names: list[str], rare: Rare) -> dict[str, ChangedFlag]:
        """Those of the flags that change for contexts made from their rules."""
        if not names:
            return {}
        other = Comparison(self.comparison.before, self.comparison.after, ContextTable(rare(names)))
        changed = {name: found for name in names if (found := other.flag(name)).changed}
        return {name: self._flag(self.comparison.flag(name), found, other) for name, found in changed.items()}

    def _changed(self, name: str, source: Comparison) -> ChangedFlag | None:
        found = source.flag(name)
        if not found.changed and not found.count(Change.UNKNOWN):
            return None
        return self._flag(found, found, source)

    def _flag(self, found: FlagComparison, shown: FlagComparison, source: Comparison) -> ChangedFlag:
        """`found` is for the users, `shown` has the examples."""
        users = {change: found.contexts.get(change, 0) & self._everyone for change in COUNTED}
        counts = {change: mask.bit_count() for change, mask in users.items()}
        for change in CHANGES:
            self._affected |= users[change]
        return ChangedFlag(
            name=found.name,
            project=source.project(found.name),
            counts=counts,
            made=shown.changed - sum(counts[change] for change in CHANGES),
            on_before=self._on(found, 0),
            on_after=self._on(found, 1),
            comparison=shown,
            source=source,
        )

    def _on(self, found: FlagComparison, side: int) -> float:
        """The share of users for whom the flag is on in one of the states."""
        pairs = found.pairs.items()
        on = (_share_on(pair[side]) * (mask & self._everyone).bit_count() for pair, mask in pairs)
        return float(sum(on, Fraction(0)) / max(1, self.users))


def _share_on(shares: Shares) -> Fraction:
    return sum((share for answer, share in shares if answer.state is State.ON), Fraction(0))


def differing(before: Snapshot, after: Snapshot) -> list[str]:
    """The flags that are not the same in both states."""
    return Comparison(before, after, ContextTable(())).differing()


def users_for(flags: int) -> int:
    """How many users are compared for that many flags if nobody says: so that it takes about a second."""
    return max(FEWEST_USERS, min(MAX_USERS, SHOWN_RESULTS // max(1, flags) // 100 * 100))


def sampled(
    states: Iterable[Definitions], *, now: PointInTime, users: int, made: int = 0, seed: int = 0
) -> Contexts:
    """Users with ids of their own, and contexts made from the rules."""
    rules = Rules(states)
    return Contexts(
        synthetic(rules, now=now, count=users, seed=seed),
        generated(rules, now=now, limit=made) if made else (),
    )


def compared(
    before: Snapshot,
    after: Snapshot,
    contexts: Contexts,
    names: Iterable[str],
    *,
    total: int | None = None,
    rare: Rare | None = None,
) -> WhoChanges:
    table = ContextTable([*contexts.users, *contexts.made])
    return WhoChanges(Comparison(before, after, table), contexts, names, total=total, rare=rare)
