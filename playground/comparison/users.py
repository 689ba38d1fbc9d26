"""Generated users: each has unique ids and, in other fields, values from the rules of a flag.

A user's value in a field depends only on their number and on the flag's values there, so that the share of a flag is
the same in every comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from random import Random
from typing import Any, NamedTuple, overload

from playground.comparison.contexts import NOTHING, make_context
from playground.comparison.rules import OTHER, Condition, list_sticky_fields, make_identifier, read_conditions
from playground.comparison.table import DEFAULT_IDENTIFIER, Column, ContextTable
from playground.engine.context import DEFAULTS, Context, PointInTime, find_sticky_text, format_time
from playground.engine.definitions import FlagDefinition
from projects.definitions import Definitions

IDENTIFIERS = ("userId", "sessionId")
"""Fields in which every user has a unique value."""
SHARE_LISTED = 0.1
"""The largest share of a stickiness field's values that may come from conditions."""
REMEMBERED = 8
"""Cached lists of values per process, each with one text or number per compared user."""
Values = tuple[str, ...]
Texts = Sequence[str | None]


class NamedValues(NamedTuple):
    """The values in the rules of a flag and its parents, by field: in the first state, and added by others."""

    first: Mapping[str, Values] = NOTHING  # type: ignore[assignment]
    added: Mapping[str, Values] = NOTHING  # type: ignore[assignment]
    sticky: frozenset[str] = frozenset(("userId",))

    @property
    def key(self) -> object:
        """Equal for flags whose rules have the same values."""
        return tuple(self.first.items()), tuple(self.added.items()), self.sticky


class NameValues:
    """Finds the values in the rules of flags in several states."""

    def __init__(self, states: Iterable[Definitions]) -> None:
        self._states = [(state.by_name(), state.segments) for state in states]

    def of(self, *names: str) -> NamedValues:
        """The values of these flags and their parents together."""
        first: dict[str, dict[str, None]] = {}
        added: dict[str, dict[str, None]] = {}
        sticky = {"userId"}
        known = set[Condition]()  # most strategies of a flag, and most flags in two states, repeat conditions
        for index, (flags, segments) in enumerate(self._states):
            parents = (parent["feature"] for name in names for parent in _list_dependencies(flags.get(name)))
            for flag in (flags[name] for name in dict.fromkeys((*names, *parents)) if name in flags):
                sticky.update(list_sticky_fields(flag))
                for condition in read_conditions(flag, segments):
                    if condition in known:
                        continue
                    known.add(condition)
                    field = condition.field
                    for value in condition.values():
                        if index == 0:
                            first.setdefault(field, {})[value] = None
                        elif value not in first.get(field, ()):
                            added.setdefault(field, {})[value] = None
        return NamedValues(_make_tuples(first), _make_tuples(added), frozenset(sticky - {"random"}))

    def of_all(self) -> NamedValues:
        return self.of(*dict.fromkeys(name for flags, _ in self._states for name in flags))


def _list_dependencies(flag: FlagDefinition | None) -> Iterable[Any]:
    return () if flag is None else flag.get("dependencies") or ()


def _make_tuples(values: Mapping[str, Iterable[str]]) -> dict[str, Values]:
    return {field: tuple(listed) for field, listed in values.items()}


class GeneratedUsers:
    """A number of users, the same every time. All have the ``fixed`` values."""

    def __init__(
        self, *, now: PointInTime, count: int, seed: int = 0, fixed: Mapping[str, str] = NOTHING
    ) -> None:
        self.now, self.count, self.seed, self.fixed = format_time(now), count, seed, dict(fixed)
        self._columns: dict[object, Texts] = {}

    def texts(self, field: str, first: Values | None, added: Values | None, *, sticky: bool) -> Texts:
        """Each user's value of a field."""
        if field in self.fixed:
            return [self.fixed[field]] * self.count
        key = field, first, added, sticky
        texts = self._columns.get(key)
        if texts is None:
            texts = self._columns[key] = self._make_texts(field, first, added, sticky=sticky)
        return texts

    def _make_texts(self, field: str, first: Values | None, added: Values | None, *, sticky: bool) -> Texts:
        if not sticky:
            if first is None and added is None:
                return [None] * self.count
            by_rank = _distribute((None, *(first or ())), added or (), self.count)
            return list(map(by_rank.__getitem__, _shuffle_ranks(field, self.seed, self.count)))
        named = (*(first or ()), *(added or ()))
        texts = list(_make_identifiers(field, self.seed, self.count))
        listed = int(self.count * SHARE_LISTED)
        if field in IDENTIFIERS:  # each is the id of one user, so that the rollout's share of users is on
            texts[: len(named[:listed])] = named[:listed]
        elif named:
            for number, rank in enumerate(_shuffle_ranks(field, self.seed, self.count)):
                if rank < listed:
                    texts[number] = named[rank * len(named) // listed]
        return texts


@lru_cache(maxsize=REMEMBERED)
def _make_identifiers(field: str, seed: int, count: int) -> Sequence[str | None]:
    return tuple(make_identifier(field, number) for number in range(1 + seed * count, 1 + (seed + 1) * count))


@lru_cache(maxsize=REMEMBERED)
def _shuffle_ranks(field: str, seed: int, count: int) -> Sequence[int]:
    """Each user's rank when the values of a field are distributed."""
    ranks = list(range(count))
    Random(f"{seed} {field}").shuffle(ranks)
    return tuple(ranks)


def _distribute(first: Sequence[str | None], added: Values, count: int) -> list[str | None]:
    """Distributes values to this number of users, all equally often. Values added by an edit replace values that no
    condition uses, so that other shares stay the same.
    """
    values: list[str | None] = []
    for number, text in enumerate(first, 1):
        users = number * count // len(first) - len(values)
        shared = [text, *added] if added and text in (None, OTHER) else [text]
        for position, value in enumerate(shared):
            values += [value] * ((position + 1) * users // len(shared) - position * users // len(shared))
    return values


class FlagUsers(Sequence[Context]):
    """Generated users with the values of one flag. Creates their contexts on access."""

    def __init__(self, users: GeneratedUsers, named: NamedValues) -> None:
        self.users, self.named = users, named
        self._texts: dict[str, Texts] = {}

    def __len__(self) -> int:
        return self.users.count

    @overload
    def __getitem__(self, number: int) -> Context: ...
    @overload
    def __getitem__(self, number: slice) -> list[Context]: ...
    def __getitem__(self, number: int | slice) -> Context | list[Context]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        fields = sorted({*self.named.first, *self.named.added, *self.named.sticky, *self.users.fixed})
        texts = {field: text for field in fields if (text := self.texts(field)[number]) is not None}
        return make_context(texts, self.users.now)

    def key(self, field: str) -> object:
        """Everything that the values in a field depend on."""
        return self.named.first.get(field), self.named.added.get(field), field in self.named.sticky

    def texts(self, field: str) -> Texts:
        texts = self._texts.get(field)
        if texts is None:
            first, added = self.named.first.get(field), self.named.added.get(field)
            texts = self.users.texts(field, first, added, sticky=field in self.named.sticky)
            self._texts[field] = texts
        return texts

    def values(self, field: str) -> Texts:
        """For each user, the value that a constraint compares."""
        default = self.users.now if field == "currentTime" else DEFAULTS.get(field)
        if default is None:
            return self.texts(field)
        is_time = field == "currentTime"  # an empty one counts as missing
        return [default if text is None or (is_time and not text) else text for text in self.texts(field)]


class UserTable(ContextTable):
    """Contexts, followed by generated users.

    ``shared`` are the columns of tables with the same contexts and users, by their inputs.
    """

    def __init__(
        self,
        before: Sequence[Context],
        users: FlagUsers,
        after: Sequence[Context],
        *,
        shared: dict[object, Column],
    ) -> None:
        self._parts = before, users, after
        self._shared = shared
        super().__init__(_Joined(before, users, after))

    def column(self, pair: tuple[str, str]) -> Column:
        column = self._columns.get(pair)
        if column is None:
            key = pair, self._parts[1].key("userId" if pair == DEFAULT_IDENTIFIER else pair[1])
            column = self._shared.get(key)
            if column is None:
                column = self._shared[key] = super().column(pair)
            self._columns[pair] = column
        return column

    def _list_field_texts(self, field: str) -> Iterable[str | None]:
        before, users, after = self._parts
        explicit, generated = ((context.values.get(field) for context in part) for part in (before, after))
        return chain(explicit, users.values(field), generated)

    def _list_default_identifiers(self) -> Iterable[str | None]:
        before, users, after = self._parts
        explicit, generated = (
            (find_sticky_text(context, "default") for context in part) for part in (before, after)
        )
        return chain(explicit, users.texts("userId"), generated)


class _Joined(Sequence[Context]):
    """The concatenation of several sequences, without copying."""

    def __init__(self, *parts: Sequence[Context]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    @overload
    def __getitem__(self, place: int) -> Context: ...
    @overload
    def __getitem__(self, place: slice) -> list[Context]: ...
    def __getitem__(self, place: int | slice) -> Context | list[Context]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        for part in self._parts:
            if 0 <= place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError(place)


def make_users(
    states: Iterable[Definitions], *, now: PointInTime, count: int, seed: int = 0
) -> list[Context]:
    """Users with values from any of the flags."""
    users = GeneratedUsers(now=now, count=count, seed=seed)
    return list(FlagUsers(users, NameValues(states).of_all()))
