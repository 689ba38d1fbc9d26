"""Counts, for each flag, the users whose result differs between two states, and gives examples.

Limits the computation of one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import or_
from time import monotonic

from django.utils.functional import cached_property

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from playground.comparison.compare import CHANGES, COUNTED, Change, Comparison, Example, FlagComparison
from playground.comparison.contexts import generate_contexts
from playground.comparison.results import Answer
from playground.comparison.table import Column, ContextTable, Mask, mask_positions
from playground.comparison.users import FlagUsers, GeneratedUsers, NamedValues, NameValues, UserTable
from playground.engine.constraints import CompiledConstraint
from playground.engine.context import Context, PointInTime
from playground.engine.outcomes import State
from playground.engine.snapshot import Snapshot
from playground.user_runs.file import find_own_users, make_own_contexts
from projects.definitions import Definitions


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one comparison. ``results`` are flags times contexts, ``advice`` suggests how to reduce them."""

    results: int = 1_000_000
    seconds: float = 20
    advice: str = "Name a flag, or give fewer contexts."

    def check_size(self, flags: int, contexts: int) -> None:
        """Raises ValidationError if these are too many."""
        if flags * contexts > self.results:
            flag, user = "flag" if flags == 1 else "flags", "user" if contexts == 1 else "users"
            size = f"{flags:,} {flag} × {contexts:,} {user} (limit {self.results:,})"
            raise ValidationError(f"Too many: {size}. {self.advice}")

    def spend(self, names: Sequence[str]) -> Iterator[str]:
        """Yields the names while there is time left: some rules can take long. Raises ValidationError."""
        start = monotonic()
        for done, name in enumerate(names):
            if monotonic() - start > self.seconds:
                raise ValidationError(
                    f"After {self.seconds} seconds {done:,} of {len(names):,} flags were compared. {self.advice}"
                )
            yield name


MAX_USERS = 10_000
SHOWN_RESULTS = 500_000
"""Flags times users on a page that chooses the number of users itself: less than a second of CPU time."""
MIN_USERS = 200
MAX_RARE = 100
"""Flags without a changed user for which contexts are made."""
MakeContexts = Callable[[list[str]], Sequence[Context]]
"""Edge cases of these flags."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """The counted contexts: ``explicit`` ones, the same for all flags, perhaps the users of a person's own file, and
    ``generated`` ones, which have the flag's values in the ``states``. ``made`` ones only serve to find changes that
    none of them shows.
    """

    explicit: Sequence[Context] = ()
    file_name: str = ""
    generated: GeneratedUsers | None = None
    states: Sequence[Definitions] = ()
    made: Sequence[Context] = ()

    @property
    def people(self) -> str:
        """The noun for the counted contexts."""
        if self.file_name:
            return f"users of {self.file_name}"
        return "generated users" if self.generated else "contexts"

    @property
    def users(self) -> int:
        return len(self.explicit) + (self.generated.count if self.generated else 0)


class Tables:
    """The table of each flag. Flags with the same values share one."""

    def __init__(self, contexts: Contexts, before: Snapshot, after: Snapshot) -> None:
        self._contexts, self._states = contexts, (before, after)
        self._shared: dict[object, Column] = {}
        self._by_key: dict[object, Comparison] = {}
        self._named: NameValues | None = NameValues(contexts.states) if contexts.generated else None

    def compare(self, name: str) -> Comparison:
        named = self._named.of(name) if self._named else None
        key = named.key if named else None
        comparison = self._by_key.get(key)
        if comparison is None:
            comparison = self._by_key[key] = Comparison(*self._states, self._make_table(named))
        return comparison

    def _make_table(self, named: NamedValues | None) -> ContextTable:
        explicit, generated, made = self._contexts.explicit, self._contexts.generated, self._contexts.made
        if named is None or generated is None:
            return ContextTable([*explicit, *made])
        return UserTable(explicit, FlagUsers(generated, named), made, shared=self._shared)


@dataclass(frozen=True, slots=True)
class FlagChanges:
    """The users whose result of one flag changes.

    ``counts`` are users by change, ``made`` is the number of other contexts that change. ``for_users`` is the
    comparison of the users only, ``for_everyone`` of all contexts of ``source``, for examples.
    """

    name: str
    project: str
    counts: Mapping[Change, int]
    made: int
    for_users: FlagComparison
    for_everyone: FlagComparison
    source: Comparison

    @property
    def users(self) -> int:
        """The users whose result certainly changes."""
        return sum(self.counts[change] for change in CHANGES)

    @property
    def is_known(self) -> bool:
        """Whether some result certainly changes."""
        return bool(self.users or self.made)

    @property
    def is_changed(self) -> bool:
        """Whether some result changes or may change."""
        return bool(self.is_known or self.for_everyone.count(Change.UNKNOWN))

    @property
    def on_before(self) -> float:
        """The share of users for whom the flag is on; random results count with their share of calls."""
        return _compute_share_on(self.for_users.before)

    @property
    def on_after(self) -> float:
        return _compute_share_on(self.for_users.after)


class WhoChanges:
    """Compares flags in two states for the given users, in the given order.

    ``flags`` has those that change, and those in ``always``. ``total`` is the number of flags, if the names are only
    some of them. Flags that differ without a changed user are compared again for contexts from ``make_rare``. Raises
    ValidationError if it takes longer than the ``budget`` allows.
    """

    def __init__(
        self,
        before: Snapshot,
        after: Snapshot,
        contexts: Contexts,
        names: Iterable[str] = (),
        *,
        budget: Budget,
        total: int | None = None,
        always: Collection[str] = (),
        make_rare: MakeContexts | None = None,
    ) -> None:
        self.comparison = Comparison(before, after, ContextTable(()))
        self.contexts = contexts
        self._tables = Tables(contexts, before, after)
        self.names = list(names)
        self.total = len(self.names) if total is None else total
        self._everyone: Mask = (1 << 8 * contexts.users) - 1
        flags = {name: self.compare(name) for name in budget.spend(self.names)}
        if make_rare is not None:
            unseen = [
                name for name, flag in flags.items() if not (flag.is_known or self.comparison.is_same(name))
            ]
            flags |= self._compare_rare(unseen[:MAX_RARE], make_rare)
        self.flags = [flag for name, flag in flags.items() if flag.is_changed or name in always]

    @property
    def users(self) -> int:
        return self.contexts.users

    @property
    def counts(self) -> dict[Change, int]:
        """The results of users, counted by change: flags times users in total."""
        counts = {change: sum(flag.counts[change] for flag in self.flags) for change in COUNTED}
        return counts | {Change.NONE: len(self.names) * self.users - sum(counts.values())}

    @property
    def people(self) -> dict[Change, int]:
        """The users, counted by their changes in any flag: a user may count for several."""
        return {
            change: reduce(
                or_, (flag.for_users.contexts.get(change, 0) for flag in self.flags), 0
            ).bit_count()
            for change in COUNTED
        }

    @property
    def affected(self) -> int:
        """Users for whom at least one flag changes."""
        return self._affected.bit_count()

    def affected_positions(self) -> Iterator[int]:
        """Their positions among the users."""
        return mask_positions(self._affected, self.users)

    @cached_property
    def _affected(self) -> Mask:
        masks = (flag.for_users.contexts.get(change, 0) for flag in self.flags for change in CHANGES)
        return reduce(or_, masks, 0)

    def compare(self, name: str) -> FlagChanges:
        """Compares one more flag for the same contexts."""
        comparison = self._tables.compare(name)
        compared = comparison.flag(name)
        return self._make_flag_changes(compared, compared, comparison)

    def changed_users(self, name: str) -> Mask:
        """The users whose result of the flag certainly changes."""
        flag = self.compare(name)
        return reduce(or_, (flag.for_users.contexts.get(change, 0) for change in CHANGES), 0) & self._everyone

    def find_who_meets(self, name: str, constraint: CompiledConstraint, pair: tuple[str, str]) -> Mask:
        """The users who meet a condition, with the flag's values. ``pair``: the compared column."""
        return self._tables.compare(name).table.holds(constraint, pair) & self._everyone

    def examples(
        self,
        flag: FlagChanges,
        changes: Sequence[Change] = COUNTED,
        *,
        limit: int | None = None,
        start: int = 0,
        limit_each: int | None = None,
    ) -> Iterator[Example]:
        """Yields contexts whose result changes, with the reasons: by change, at most ``limit_each`` of each, users
        before other contexts.
        """
        contexts = {change: flag.for_everyone.contexts.get(change, 0) for change in changes}
        return flag.source.examples(
            replace(flag.for_everyone, contexts=contexts), limit, start, limit_each=limit_each
        )

    def _compare_rare(self, names: list[str], make: MakeContexts) -> dict[str, FlagChanges]:
        """Finds flags that change for contexts made from their rules."""
        if not names:
            return {}
        other = Comparison(self.comparison.before, self.comparison.after, ContextTable(make(names)))
        changed = {name: compared for name in names if (compared := other.flag(name)).changed}
        return {
            name: self._make_flag_changes(self._tables.compare(name).flag(name), compared, other)
            for name, compared in changed.items()
        }

    def _make_flag_changes(
        self, compared: FlagComparison, comparison: FlagComparison, source: Comparison
    ) -> FlagChanges:
        """``compared`` has the users, ``comparison`` the examples."""
        users = compared.among(self._everyone) if self.contexts.made else compared
        counts = {change: users.count(change) for change in COUNTED}
        return FlagChanges(
            name=comparison.name,
            project=source.project(comparison.name),
            counts=counts,
            made=comparison.changed - sum(counts[change] for change in CHANGES),
            for_users=users,
            for_everyone=comparison,
            source=source,
        )


def _compute_share_on(answers: Mapping[Answer, Fraction]) -> float:
    on = sum((count for answer, count in answers.items() if answer.state is State.ON), Fraction(0))
    return float(on / max(1, sum(answers.values())))


def find_differing(before: Snapshot, after: Snapshot) -> list[str]:
    """The names of the flags that differ between the states, including their parents and segments."""
    return Comparison(before, after, ContextTable(())).list_differing()


def choose_number_of_users(flags: int) -> int:
    """The default number of users for this number of flags. The comparison takes less than a second."""
    return max(MIN_USERS, min(MAX_USERS, SHOWN_RESULTS // max(1, flags) // 100 * 100))


def choose_users(
    caller: Caller, states: Iterable[Definitions], *, now: PointInTime, users: int, made: int = 0
) -> Contexts:
    """The users of the caller's own last file, if they keep one, else generated ones; and edge cases."""
    own = find_own_users(caller)
    if own is None:
        return generate_users(states, now=now, users=users, made=made)
    edge_cases = generate_contexts(states, now=now, limit=made) if made else ()
    return Contexts(make_own_contexts(own, users), own.file_name, made=edge_cases)


def generate_users(
    states: Iterable[Definitions], *, now: PointInTime, users: int, made: int = 0, seed: int = 0
) -> Contexts:
    """Generated users, and edge cases of these flags."""
    states = list(states)
    return Contexts(
        generated=GeneratedUsers(now=now, count=users, seed=seed),
        states=states,
        made=generate_contexts(states, now=now, limit=made) if made else (),
    )
