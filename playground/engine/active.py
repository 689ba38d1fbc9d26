"""Decides which flags are on for a context, and with which variant, without the data for reasons.

Frontend SDKs need only this. It evaluates only strategies that can turn a flag on, until one does. It leaves flags with
dependencies, and their parents, to `playground.engine.evaluator`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, count
from operator import is_, is_not
from typing import Any, Generic, NamedTuple, TypeVar

from playground.engine.batch import list_constraints
from playground.engine.constraints import CompiledConstraint
from playground.engine.context import Context, Values
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.hashing import ROLLOUT_SEED, VARIANT_SEED, Random, murmur3
from playground.engine.operators import UNDECIDABLE, Test
from playground.engine.outcomes import PICK, FlagOutcome
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import Mode
from playground.engine.variants import NONE, CompiledVariants

T = TypeVar("T")
ALWAYS = 100  # the threshold of a rollout that includes everyone
GENERATIONS = 100  # of a snapshot, from which answers can be taken over
MOSTLY = 0.9  # the part of the earlier flags that must still exist before their data is reused
SPARE_FLAGS = 50


class Pieces(NamedTuple, Generic[T]):
    """The pieces for a flag that is on: without a variant, with each of its own, and with each of each strategy's."""

    plain: T
    own: tuple[T, ...]
    strategies: tuple[tuple[T, ...], ...]

    def of(self, outcome: FlagOutcome) -> T:
        if outcome.decided != NONE and (pick := outcome.strategies[outcome.decided][PICK]) != NONE:
            return self.strategies[outcome.decided][pick]
        return self.plain if outcome.pick == NONE else self.own[outcome.pick]


_generations = count()
_Condition = tuple[Test, int, bool]
"""The test of a constraint, its column, and whether it is inverted."""


@dataclass(slots=True)
class _Choice(Generic[T]):
    """Variants to pick from, and the piece for each."""

    variants: CompiledVariants
    pieces: tuple[T, ...]
    plain: T

    def pick(self, values: Values, random: Random) -> T:
        variants = self.variants
        identifier = values[variants.column]
        if variants.overrides or identifier is None:
            index, _ = variants.pick(values, random)
            return self.plain if index == NONE else self.pieces[index]
        # `hash_place` without a call
        place = murmur3(variants.key + identifier, VARIANT_SEED) % variants.total + 1
        return self.pieces[bisect_left(variants.limits, place)]


class _Strategy(NamedTuple, Generic[T]):
    """A strategy that can pass: the shared conditions it needs as a bit set, its own ones, and its rollout."""

    needed: int
    own: tuple[_Condition, ...]
    threshold: int
    column: int
    key: bytes
    draws: bool
    piece: T | None
    choice: _Choice[T] | None


_Strategies = tuple[_Strategy[T], ...]
"""The strategies of a flag that can pass."""


class Found(NamedTuple, Generic[T]):
    """The piece of each flag for a context by position, None if it is off, and the generation that it was found in.

    It does not keep the snapshot in memory.
    """

    pieces: list[T | None]
    generation: int

    @property
    def active(self) -> list[T]:
        """The pieces of the flags that are on, by name. No piece is empty."""
        return list(filter(None, self.pieces))


class Left(NamedTuple, Generic[T]):
    """Data that a later snapshot can reuse. Excludes the earlier snapshot, which would stay in memory with
    its batch.
    """

    flags: tuple[CompiledFlag, ...]
    prepared: list[_Strategies[T] | None]
    apart: Collection[int]
    shared: _SharedConditions
    added: int
    generations: tuple[int, ...]
    since: list[int]

    def find_known(self, flags: tuple[CompiledFlag, ...]) -> tuple[list[_Strategies[T] | None], list[int]]:
        """The preparation of the flags that a later snapshot still has, by position, and the positions of all others.

        Nothing if too many were added since the shared conditions were determined, or too much unused data would be
        kept.
        """
        if self.added > 0.25 * len(self.flags) + SPARE_FLAGS:
            return [], []
        changed = compress(count(), map(is_not, flags, self.flags))
        if len(flags) == len(self.flags) and len(new := list(changed)) < (1 - MOSTLY) * len(flags):
            return self.prepared.copy(), sorted({*new, *self.apart})
        known = dict(zip(map(id, self.flags), self.prepared, strict=True))
        if sum(map(known.__contains__, map(id, flags))) < MOSTLY * len(self.flags):
            return [], []
        prepared = list(map(known.get, map(id, flags)))
        return prepared, [position for position, flag in enumerate(prepared) if flag is None]


class ActiveFlags(Generic[T]):
    """The flags of a snapshot that can be on. Immutable; safe to share."""

    def __init__(
        self,
        snapshot: Snapshot,
        pieces_of: Callable[[int], Pieces[T]],
        earlier: Left[T] | None = None,
    ) -> None:
        """`pieces_of` returns the pieces of the flag at a position.

        Reuses the preparation of flags that are the same objects as in the `earlier` snapshot, from which this one was
        compiled.
        """
        self._snapshot = snapshot
        flags = snapshot.flags
        known, new = earlier.find_known(flags) if earlier else ([], [])
        self._shared = earlier.shared if earlier and known else _SharedConditions(snapshot)
        self._added = earlier.added if earlier and known else 0
        self._prepared: list[_Strategies[T] | None] = known or [None] * len(flags)
        """By position; empty for flags that cannot be on, None for those evaluated separately."""
        apart = _find_dependent(snapshot)
        self._apart = snapshot.part({flags[position].name for position in apart}) if apart else None
        self._pieces_apart = {position: pieces_of(position) for position in apart}
        for position in new if known else range(len(flags)):
            if position not in apart and _may_be_on(flags[position]):
                self._prepared[position] = tuple(self._prepare(flags[position], pieces_of(position)))
                self._added += bool(known)
            else:
                self._prepared[position] = ()
        for position in apart:
            self._prepared[position] = None
        generation = next(_generations)
        self._generations: tuple[int, ...] = (generation,)
        """The numbers of this snapshot, and of those before it with the same number of flags, oldest first."""
        self._since = [generation] * len(flags)
        """The generation that last changed the preparation at each position."""
        if earlier and known and len(flags) == len(earlier.flags):
            self._generations = (*earlier.generations[1 - GENERATIONS :], generation)
            same = map(is_, self._prepared, earlier.prepared)
            self._since = [
                since if kept else generation for since, kept in zip(earlier.since, same, strict=True)
            ]

    @property
    def left(self) -> Left[T]:
        return Left(
            self._snapshot.flags,
            self._prepared,
            self._pieces_apart.keys(),
            self._shared,
            self._added,
            self._generations,
            self._since,
        )

    @cached_property
    def _possible(self) -> list[tuple[int, _Strategies[T]]]:
        """The flags that may be on, by position, without those evaluated separately."""
        return [(position, strategies) for position, strategies in enumerate(self._prepared) if strategies]

    def _prepare(self, flag: CompiledFlag, pieces: Pieces[T]) -> Iterator[_Strategy[T]]:
        own = _choose(flag.variants, pieces.own, pieces.plain)
        if not flag.strategies:
            yield _Strategy(0, (), ALWAYS, NONE, b"", True, *own)
        for strategy, its_pieces in zip(flag.strategies, pieces.strategies, strict=True):
            rollout = strategy.rollout
            if strategy.mode is not Mode.OPEN or strategy.missing_segments:
                continue
            needed = self._shared.split(list_constraints(strategy, self._snapshot.segments))
            chosen = (
                own if strategy.variants is None else _choose(strategy.variants, its_pieces, pieces.plain)
            )
            if rollout is None:
                yield _Strategy(*needed, ALWAYS, NONE, b"", True, *chosen)
            elif rollout.threshold > 0:
                yield _Strategy(
                    *needed, rollout.threshold, rollout.column, rollout.key, rollout.draws, *chosen
                )

    def find(self, context: Context, random: Random, before: Found[T] | None = None) -> Found[T]:
        """Finds the piece for each flag that is on. The context must have its currentTime.

        Takes over the pieces of unchanged flags from `before`: what was found in an earlier snapshot, without chance,
        for a context with the same values of all fields that the flags use.
        """
        values, prepared = self._snapshot.values(context), self._prepared
        pieces: list[T | None]
        if before is not None and before.generation in self._generations:
            pieces, possible = before.pieces.copy(), []
            for position in compress(count(), map(before.generation.__lt__, self._since)):
                pieces[position] = None
                if strategies := prepared[position]:
                    possible.append((position, strategies))
        else:
            possible, pieces = self._possible, [None] * len(prepared)
        _add_active(possible, self._shared.held(values), values, random, pieces)
        if self._apart is not None:
            apart = Evaluation(self._apart, context, random)
            for position, its_pieces in self._pieces_apart.items():
                _, outcome = apart.pair(self._snapshot.flags[position].name)
                pieces[position] = its_pieces.of(outcome) if outcome.on else None
        return Found(pieces, self._generations[-1])


def _add_active(
    flags: list[tuple[int, _Strategies[T]]],
    held: int,
    values: Values,
    random: Random,
    pieces: list[T | None],
) -> None:
    for position, strategies in flags:
        for needed, own, threshold, column, key, draws, piece, choice in strategies:
            if held & needed != needed or (own and not _hold(own, values)):
                continue
            if threshold < ALWAYS or not draws:
                identifier = values[column]
                if identifier is not None:
                    # `hash_place` without a call
                    if murmur3(key + identifier, ROLLOUT_SEED) % 100 >= threshold:
                        continue
                elif not draws or int(random() * 100) + 1 > threshold:
                    continue
            pieces[position] = choice.pick(values, random) if choice is not None else piece
            break


def _choose(
    variants: CompiledVariants | None, pieces: tuple[T, ...], plain: T
) -> tuple[T | None, _Choice[T] | None]:
    """Finds the piece for these variants if it is always the same, otherwise returns a choice."""
    if variants is None:
        return plain, None
    if variants.overrides or variants.divides:
        return None, _Choice(variants, pieces, plain)
    return pieces[bisect_left(variants.limits, 1)] if variants.total else plain, None


def _may_be_on(flag: CompiledFlag) -> bool:
    return flag.enabled and flag.fault is None


def _find_dependent(snapshot: Snapshot) -> set[int]:
    """The positions of the flags that depend on others, and of their parents."""
    if not snapshot.children:
        return set()
    positions = snapshot.positions
    parents = {parent.name for child in snapshot.children for parent in snapshot.flags[child].parents}
    return {*snapshot.children, *(positions[name] for name in parents if name in positions)}


_DIGITS = bytes([48, 49]).ljust(256, b"0")  # 0 and 1 as text, which int() reads fastest


class _SharedConditions:
    """The constraints of several strategies, each tested once for a context. The result is a bit set.

    Strategies test their other constraints themselves: a bit for each of many would make all sets long.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        strategies = chain.from_iterable(flag.strategies for flag in snapshot.flags if _may_be_on(flag))
        used = [each for strategy in strategies for each in list_constraints(strategy, snapshot.segments)]
        uses = Counter(map(id, used))
        # Kept, because otherwise new constraints could get their ids.
        self._constraints = list({id(each): each for each in used if uses[id(each)] > 1}.values())
        self._bits = {id(constraint): 1 << index for index, constraint in enumerate(self._constraints)}
        self._tests = [_make_test(constraint) for constraint in self._constraints]

    def split(self, constraints: Iterator[CompiledConstraint]) -> tuple[int, tuple[_Condition, ...]]:
        """The bits of those constraints that are shared, and the conditions of the others."""
        needed, own = 0, list[_Condition]()
        for constraint in constraints:
            if bit := self._bits.get(id(constraint), 0):
                needed |= bit
            else:
                own.append(_make_test(constraint))
        return needed, tuple(own)

    def held(self, values: Values) -> int:
        """The constraints that hold for these column values: one bit each, the lowest for the first."""
        results = bytes([test(values[column]) is not inverted for test, column, inverted in self._tests])
        return int(results[::-1].translate(_DIGITS) or b"0", 2)


def _hold(conditions: tuple[_Condition, ...], values: Values) -> bool:
    for test, column, inverted in conditions:  # noqa: SIM110 - a generator takes twice as long
        if test(values[column]) is inverted:
            return False
    return True


def _make_test(constraint: CompiledConstraint) -> _Condition:
    if constraint.operator != "REGEX":
        return constraint.test, constraint.column, constraint.inverted
    test, inverted = constraint.test, constraint.inverted

    def holds_for_certain(value: Any) -> bool:
        """Whether a server can evaluate it, and it holds."""
        return value is not UNDECIDABLE and test(value) is not inverted

    return holds_for_certain, constraint.column, False
