"""The strategies of a snapshot, laid out to evaluate all of them together.

From one strategy to the next an evaluation would follow a dozen references all over the memory, and waiting for them
is most of what it would do. Here lies side by side what each step needs of all strategies.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import and_, eq, le
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from playground.engine.constraints import CompiledConstraint
from playground.engine.hashing import ROLLOUT_SEED, VARIANT_SEED, murmur3
from playground.engine.operators import UNTOLD, Test
from playground.engine.strategies import CompiledStrategy, Mode, Rollout, Words
from playground.engine.variants import NONE, CompiledVariants, Random

if TYPE_CHECKING:
    from playground.engine.snapshot import CompiledFlag, CompiledSegment

StrategyOutcome = tuple[bool | None, int, int, int, int]
"""What one evaluation found for one strategy, as a plain tuple because there are so many of them:

verdict (None: only an SDK can tell, or it is disabled), bits of the conditions that hold, rollout bucket from 1
to 100 (0: none computed), index of the picked variant (NONE: none), its place among the weights (0: overridden).
"""

VERDICT: Final = 0
BITS: Final = 1
BUCKET: Final = 2
PICK: Final = 3


class Found(NamedTuple):
    """What one evaluation found for all strategies of a snapshot: the parts of their outcomes, each by strategy."""

    verdicts: list[bool | None]
    bits: list[int]
    buckets: list[int]
    picks: list[int]
    places: list[int]

    def outcomes(self) -> list[StrategyOutcome]:
        return list(zip(*self, strict=True))


class ConstraintTable:
    """The constraints of all strategies; equal ones are looked at once."""

    __slots__ = ("_columns", "_inverted", "_ranks", "_strategies", "_tests")

    def __init__(self, constraints: Sequence[tuple[CompiledConstraint, ...]]) -> None:
        """With the constraints of every strategy."""
        self._strategies = len(constraints)
        self._columns = array("I")
        self._tests: list[Test] = []
        self._inverted: list[bool] = []
        self._ranks: list[tuple[array[int], array[int]]] = []
        """First the strategies that have a constraint, and which it is, then those that have a second one, ..."""
        known: dict[int, int] = {}
        for position, its in enumerate(constraints):
            while len(its) > len(self._ranks):
                self._ranks.append((array("I"), array("I")))
            for constraint, (positions, indices) in zip(its, self._ranks, strict=False):
                index = known.setdefault(id(constraint), len(self._tests))
                if index == len(self._tests):
                    self._columns.append(constraint.column)
                    self._tests.append(constraint.test)
                    self._inverted.append(constraint.inverted)
                positions.append(position)
                indices.append(index)

    def bits(self, values: list[Any]) -> list[int]:
        """By strategy the bits of those of its constraints that hold."""
        tests = zip(self._tests, self._columns, self._inverted, strict=True)
        held = [test(values[column]) is not inverted for test, column, inverted in tests]
        bits = [0] * self._strategies
        bit = 1
        for positions, indices in self._ranks:
            for position, holds in zip(positions, map(held.__getitem__, indices), strict=True):
                if holds:
                    bits[position] |= bit
            bit <<= 1
        return bits


class Rollouts:
    """The rollouts that hash one column's value; `positions` are those of their strategies."""

    __slots__ = ("_draws", "_keys", "column", "positions")

    def __init__(self, column: int, *, draws: bool) -> None:
        self.column = column
        self._draws = draws
        self.positions = array("I")
        self._keys: list[bytes] = []

    def add(self, position: int, rollout: Rollout) -> None:
        self.positions.append(position)
        self._keys.append(rollout.key)

    def buckets(self, identifier: bytes | None, random: Random) -> list[int] | None:
        """Where the identifier falls in each of them, from 1 to 100; None if there is none to put anywhere."""
        if identifier is not None:
            return [murmur3(key + identifier, ROLLOUT_SEED, False) % 100 + 1 for key in self._keys]
        return [int(random() * 100) + 1 for _ in self._keys] if self._draws else None


class StrategyVariants:
    """The strategies' variants that hash one column's value; `positions` are those of the strategies."""

    __slots__ = ("_keys", "_totals", "column", "limits", "positions")

    def __init__(self, column: int) -> None:
        self.column = column
        self.positions = array("I")
        self.limits: list[tuple[int, ...]] = []
        self._totals: list[int] = []
        self._keys: list[bytes] = []

    def add(self, position: int, variants: CompiledVariants) -> None:
        self.positions.append(position)
        self.limits.append(variants.limits)
        self._totals.append(variants.total)
        self._keys.append(variants.key)

    def places(self, identifier: bytes | None, random: Random) -> list[int]:
        """Where the identifier falls among the weights of each, from 1 to their total; by chance without one."""
        if identifier is None:
            return [int(random() * total) + 1 for total in self._totals]
        pairs = zip(self._keys, self._totals, strict=True)
        return [murmur3(key + identifier, VARIANT_SEED, False) % total + 1 for key, total in pairs]


class Program:
    """The strategies of flags, one flag after the other, by what each step of an evaluation needs of them."""

    def __init__(self, flags: Iterable[CompiledFlag], segments: Sequence[CompiledSegment]) -> None:
        self.ends = array("I")
        """By flag the position behind its last strategy."""
        self.sure = bytearray()
        """By flag whether it is off when none of its strategies is on: it has some, and all can be told."""
        self.words: list[Words] = []
        """By strategy."""
        self.plain = bytearray()
        """By flag whether the words of its strategies say why it is on or off, unless a parent does."""
        self._all_hold: list[int] = []
        self._thresholds: list[int] = []
        """By strategy; a strategy without a rollout is in bucket 0, which is always inside."""
        self._segmented: list[tuple[int, tuple[int, ...]]] = []
        self._settled: list[tuple[int, Mode]] = []
        """Strategies that their conditions alone do not decide."""
        self._matched: dict[int, tuple[int, ...]] = {}
        """By position the columns that a strategy matches against regular expressions, if any."""
        self._rollouts: dict[tuple[int, bool], Rollouts] = {}
        self._variants: dict[int, StrategyVariants] = {}
        constraints: list[tuple[CompiledConstraint, ...]] = []
        for flag in flags:
            strategies = flag.strategies
            constraints += [strategy.constraints for strategy in strategies]
            matched = len(self._matched)
            for strategy in strategies:
                self._match(len(self._all_hold), strategy, segments)
                self._add(len(self._all_hold), strategy)
            self.ends.append(len(self._all_hold))
            tellable = len(self._matched) == matched and strategies != ()
            self.sure.append(tellable and all(each.mode is Mode.OPEN for each in strategies))
            runs = flag.enabled and flag.fault is None and tellable
            self.plain.append(runs and all(map(_is_plain, strategies)))
        self._constraints = ConstraintTable(constraints)

    def _match(self, position: int, strategy: CompiledStrategy, segments: Sequence[CompiledSegment]) -> None:
        columns = {c.column for c in conditions_of(strategy, segments) if c.operator == "REGEX"}
        if columns:
            self._matched[position] = tuple(columns)

    def _add(self, position: int, strategy: CompiledStrategy) -> None:
        rollout, variants = strategy.rollout, strategy.variants
        self.words.append(strategy.words)
        self._all_hold.append(strategy.all_hold)
        self._thresholds.append(0 if rollout is None else rollout.threshold)
        if strategy.segments:
            self._segmented.append((position, strategy.segments))
        if rollout is not None:
            key = rollout.column, rollout.draws
            if key not in self._rollouts:
                self._rollouts[key] = Rollouts(rollout.column, draws=rollout.draws)
            self._rollouts[key].add(position, rollout)
        elif strategy.mode is not Mode.OPEN:
            self._settled.append((position, strategy.mode))
        if variants is not None:
            if variants.column not in self._variants:
                self._variants[variants.column] = StrategyVariants(variants.column)
            self._variants[variants.column].add(position, variants)

    def run(self, values: list[Any], held: list[bool], random: Random) -> Found:
        """Evaluates every strategy, so that every one can be explained.

        `values` are those of the columns, `held` says of each segment whether it holds.
        """
        bits = self._constraints.bits(values)
        buckets, nobody = self._buckets(values, random)
        inside = map(le, buckets, self._thresholds)
        verdicts: list[bool | None] = list(map(and_, map(eq, bits, self._all_hold), inside))
        for position in nobody:
            verdicts[position] = False
        for position, segments in self._segmented:
            if verdicts[position]:
                verdicts[position] = all(map(held.__getitem__, segments))
        for position, mode in self._settled:
            verdicts[position] = _settle(mode, verdicts[position])
        for position, columns in self._matched.items():
            if verdicts[position] and any(values[column] is UNTOLD for column in columns):
                verdicts[position] = None
        picks, places = self._picks(values, random)
        return Found(verdicts, bits, buckets, picks, places)

    def _buckets(self, values: list[Any], random: Random) -> tuple[list[int], list[int]]:
        """The bucket of every strategy, and the positions of those with a rollout but nobody to put into it."""
        buckets, nobody = [0] * len(self._all_hold), list[int]()
        for rollouts in self._rollouts.values():
            found = rollouts.buckets(values[rollouts.column], random)
            if found is None:
                nobody += rollouts.positions
            elif len(found) == len(buckets):
                buckets = found
            else:
                for position, bucket in zip(rollouts.positions, found, strict=True):
                    buckets[position] = bucket
        return buckets, nobody

    def _picks(self, values: list[Any], random: Random) -> tuple[list[int], list[int]]:
        """The variant of every strategy, and its place among the weights."""
        picks, places = [NONE] * len(self._all_hold), [0] * len(self._all_hold)
        for variants in self._variants.values():
            found = variants.places(values[variants.column], random)
            picked = map(bisect_left, variants.limits, found)
            for position, pick, place in zip(variants.positions, picked, found, strict=True):
                picks[position] = pick
                places[position] = place
        return picks, places


def conditions_of(
    strategy: CompiledStrategy, segments: Sequence[CompiledSegment]
) -> Iterator[CompiledConstraint]:
    """A strategy's own constraints, and those of its segments."""
    yield from strategy.constraints
    for position in strategy.segments:
        yield from segments[position].constraints


def _is_plain(strategy: CompiledStrategy) -> bool:
    return strategy.mode is Mode.OPEN and not strategy.segments and not strategy.missing_segments


def _settle(mode: Mode, verdict: bool | None) -> bool | None:
    """The verdict where it is not the conditions alone that decide."""
    if mode is Mode.NEVER:
        return False
    return None if verdict or mode is Mode.DISABLED else False
