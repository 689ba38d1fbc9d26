"""Evaluates all strategies and segments of a snapshot for one context together, step by step.

Evaluating strategy by strategy would follow a dozen scattered references for each, and spend most of its time waiting
for memory. Here, the data that one step needs for all strategies is adjacent.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import and_, eq, le
from typing import NamedTuple

from playground.engine.constraints import CompiledConstraint, Conditions
from playground.engine.context import Values
from playground.engine.flags import CompiledFlag, CompiledSegment
from playground.engine.hashing import ROLLOUT_SEED, Random, draw_places, hash_places
from playground.engine.operators import UNDECIDABLE, Test
from playground.engine.outcomes import StrategyOutcome
from playground.engine.strategies import CompiledStrategy, Mode, Rollout
from playground.engine.variants import NONE, CompiledVariants, place_variants


class BatchResult(NamedTuple):
    """The result of an evaluation: the parts of each strategy's outcome, and whether each segment holds."""

    verdicts: list[bool | None]
    bits: list[int]
    buckets: list[int]
    picks: list[int]
    places: list[int]
    segment_bits: list[int]
    segments_hold: list[bool]

    def outcomes(self) -> list[StrategyOutcome]:
        return list(zip(self.verdicts, self.bits, self.buckets, self.picks, self.places, strict=True))

    def sign(self, batch: Batch) -> list[tuple[object, ...]]:
        """For each strategy, what its result depends on, without the numbers of its bucket and its place."""
        decided = zip(self.verdicts, self.bits, self.buckets, batch.thresholds, self.picks, strict=True)
        return [
            (verdict, bits, (bucket > 0) + (bucket > threshold), pick if verdict else NONE)
            for verdict, bits, bucket, threshold, pick in decided
        ]


class ConstraintTable:
    """The constraints of all strategies and segments. Equal constraints are tested once."""

    __slots__ = ("_columns", "_inverted", "_last", "_length", "_ranks", "_tests")

    def __init__(self, conditions: Sequence[Conditions]) -> None:
        self._length = len(conditions)
        self._columns = array("I")
        self._tests: list[Test] = []
        self._inverted: list[bool] = []
        self._ranks: list[tuple[array[int], array[int]]] = []
        """The positions of conditions with a constraint and its index, then of those with a second one, and so on."""
        self._last: tuple[list[bool], list[int]] = [], [0] * self._length
        """The last results with their bit sets, which most users have in common. Replaced as a whole, for threads."""
        known: dict[int, int] = {}
        for position, its_conditions in enumerate(conditions):
            if not its_conditions.constraints:
                continue
            while len(its_conditions.constraints) > len(self._ranks):
                self._ranks.append((array("I"), array("I")))
            for constraint, (positions, indices) in zip(
                its_conditions.constraints, self._ranks, strict=False
            ):
                index = known.setdefault(id(constraint), len(self._tests))
                if index == len(self._tests):
                    self._columns.append(constraint.column)
                    self._tests.append(constraint.test)
                    self._inverted.append(constraint.inverted)
                positions.append(position)
                indices.append(index)

    def bits(self, values: Values) -> list[int]:
        """For each strategy and segment, a bit set of its constraints that hold, the lowest bit for the first."""
        tests = zip(self._tests, self._columns, self._inverted, strict=True)
        results = [test(values[column]) is not inverted for test, column, inverted in tests]
        before, bits = self._last
        if results == before:
            return bits.copy()
        bits = [0] * self._length
        bit = 1
        for positions, indices in self._ranks:
            for position, holds in zip(positions, map(results.__getitem__, indices), strict=True):
                if holds:
                    bits[position] |= bit
            bit <<= 1
        self._last = results, bits
        return bits.copy()


class Rollouts:
    """The rollouts with the same stickiness. `positions` are those of their strategies."""

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
        """The bucket of each rollout, from 1 to 100; None without an identifier if buckets are not drawn."""
        if identifier is not None:
            return hash_places(self._keys, repeat(100), identifier, ROLLOUT_SEED)
        return draw_places(repeat(100, len(self._keys)), random) if self._draws else None


class StrategyVariants:
    """The variants of strategies with the same stickiness. `positions` are those of the strategies."""

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
        return place_variants(self._keys, self._totals, identifier, random)


class Batch:
    """The strategies and segments of a snapshot, laid out for the steps of an evaluation."""

    def __init__(self, flags: Iterable[CompiledFlag], segments: Sequence[CompiledSegment]) -> None:
        self.ends = array("I")
        """The position behind the last strategy of each flag."""
        self.decidable = bytearray()
        """For each flag, whether it is off if no strategy passes: it has strategies, and a server can
        evaluate all of them.
        """
        self._all_hold: list[int] = []
        self.thresholds: list[int] = []
        """The limit of each strategy. A strategy without a rollout is in bucket 0, which is always inside."""
        self._segmented: list[tuple[int, tuple[int, ...]]] = []
        self._settled: list[tuple[int, Mode]] = []
        """Strategies that their conditions alone do not decide."""
        self._matched: dict[int, tuple[int, ...]] = {}
        """By position, the columns that a strategy matches with regular expressions, if any."""
        self._rollouts: dict[tuple[int, bool], Rollouts] = {}
        self._variants: dict[int, StrategyVariants] = {}
        conditions: list[Conditions] = []
        for flag in flags:
            decidable = flag.strategies != ()
            for position, strategy in enumerate(flag.strategies, start=len(conditions)):
                conditions.append(strategy.conditions)
                self._add(position, strategy, segments)
                decidable &= strategy.mode is Mode.OPEN and position not in self._matched
            self.ends.append(len(conditions))
            self.decidable.append(decidable)
        self._segments_all_hold = [segment.conditions.all_hold for segment in segments]
        self._constraints = ConstraintTable(conditions + [segment.conditions for segment in segments])

    def _add(self, position: int, strategy: CompiledStrategy, segments: Sequence[CompiledSegment]) -> None:
        rollout, variants = strategy.rollout, strategy.variants
        self._all_hold.append(strategy.all_hold)
        self.thresholds.append(0 if rollout is None else rollout.threshold)
        matched = strategy.conditions.matched
        if strategy.segments:
            self._segmented.append((position, strategy.segments))
            matched = matched.union(*(segments[segment].conditions.matched for segment in strategy.segments))
        if matched:
            self._matched[position] = tuple(matched)
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

    def run(self, values: Values, random: Random) -> BatchResult:
        """Evaluates all segments and strategies, so that each can be explained.

        `values` has the values of the columns.
        """
        bits = self._constraints.bits(values)
        segment_bits = bits[len(self._all_hold) :]
        del bits[len(self._all_hold) :]
        segments_hold = list(map(eq, segment_bits, self._segments_all_hold))
        buckets, nobody = self._compute_buckets(values, random)
        inside = map(le, buckets, self.thresholds)
        verdicts: list[bool | None] = list(map(and_, map(eq, bits, self._all_hold), inside))
        for position in nobody:
            verdicts[position] = False
        for position, segments in self._segmented:
            if verdicts[position]:
                verdicts[position] = all(map(segments_hold.__getitem__, segments))
        for position, mode in self._settled:
            verdicts[position] = _settle(mode, verdicts[position])
        for position, columns in self._matched.items():
            if verdicts[position] and any(values[column] is UNDECIDABLE for column in columns):
                verdicts[position] = None
        picks, places = self._pick_variants(values, random)
        return BatchResult(verdicts, bits, buckets, picks, places, segment_bits, segments_hold)

    def _compute_buckets(self, values: Values, random: Random) -> tuple[list[int], list[int]]:
        """The bucket of every strategy, and the positions of those with a rollout but no identifier."""
        buckets, nobody = [0] * len(self._all_hold), list[int]()
        for rollouts in self._rollouts.values():
            computed = rollouts.buckets(values[rollouts.column], random)
            if computed is None:
                nobody += rollouts.positions
            elif len(computed) == len(buckets):
                buckets = computed
            else:
                for position, bucket in zip(rollouts.positions, computed, strict=True):
                    buckets[position] = bucket
        return buckets, nobody

    def _pick_variants(self, values: Values, random: Random) -> tuple[list[int], list[int]]:
        """The variant of every strategy, and its place among the weights."""
        picks, places = [NONE] * len(self._all_hold), [0] * len(self._all_hold)
        for variants in self._variants.values():
            computed = variants.places(values[variants.column], random)
            picked = map(bisect_left, variants.limits, computed)
            for position, pick, place in zip(variants.positions, picked, computed, strict=True):
                picks[position] = pick
                places[position] = place
        return picks, places


def list_constraints(
    strategy: CompiledStrategy, segments: Sequence[CompiledSegment]
) -> Iterator[CompiledConstraint]:
    """The constraints of a strategy and of its segments."""
    yield from strategy.constraints
    for position in strategy.segments:
        yield from segments[position].constraints


def _settle(mode: Mode, verdict: bool | None) -> bool | None:
    """The verdict of a strategy that its conditions alone do not decide."""
    if mode is Mode.NEVER:
        return False
    return None if verdict or mode is Mode.DISABLED else False
