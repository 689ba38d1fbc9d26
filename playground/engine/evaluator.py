"""One evaluation of a snapshot: every flag's result, and enough kept to explain each of them.

The outcomes are plain tuples, made once per flag and read by index: sentences, pages and the wire all look
things up in them, nothing is evaluated twice. Time and randomness are arguments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from playground.engine.context import Context, Moment, sticky_field
from playground.engine.dependencies import Unmet, unmet_parents, variant_name
from playground.engine.hashing import ROLLOUT_SEED, murmur3
from playground.engine.snapshot import CompiledFlag, Snapshot
from playground.engine.strategies import CompiledStrategy, Mode
from playground.engine.variants import NONE, Random

StrategyOutcome = tuple[bool | None, int, int, int, int]
"""What one evaluation found for one strategy, as a plain tuple because there are so many of them:

verdict (None: only an SDK can tell, or it is disabled), bits of the conditions that hold, rollout bucket from 1
to 100 (0: none computed), index of the picked variant (NONE: none), its place among the weights (0: overridden).
"""

VERDICT: Final = 0
BITS: Final = 1
BUCKET: Final = 2
PICK: Final = 3


class FlagOutcome(NamedTuple):
    """What one evaluation found for one flag. Evaluations keep plain tuples of the same fields."""

    result: bool | None
    """The strategies' result; None: only an SDK can tell."""
    on: bool
    """What an application gets; false where only an SDK can tell."""
    decided: int
    """Position of the first strategy that passed, NONE if none did."""
    pick: int
    """Index of the flag's own variant, NONE if it gets none."""
    place: int
    """The place of that pick among the weights."""
    strategies: list[StrategyOutcome]
    unmet: tuple[Unmet, ...] = ()
    """Parents that are not as the flag needs them."""


PlainOutcome = tuple[bool | None, bool, int, int, int, list[StrategyOutcome], tuple[Unmet, ...]]
"""A FlagOutcome before anybody asks for its fields by name."""


class Run(NamedTuple):
    """What an evaluation needs at hand for every strategy."""

    values: list[Any]
    """The value of every column."""
    known: list[int | None]
    """By the position of Conditions which of them hold, once one strategy has asked."""
    held: list[bool]
    """Whether each segment holds."""
    random: Random


class Evaluation:
    """The outcomes of one snapshot for one context, in the order of `snapshot.flags`."""

    def __init__(self, snapshot: Snapshot, context: Context, random: Random) -> None:
        self.snapshot = snapshot
        self.context = context
        self.values = snapshot.columns.values(context)
        self.segment_bits = [segment.conditions.bits(self.values) for segment in snapshot.segments]
        self._run = Run(self.values, [None] * snapshot.conditions, self._held(), random)
        self.outcomes: list[PlainOutcome] = [flag_outcome(flag, self._run) for flag in snapshot.flags]
        self._apply_parents()

    def _held(self) -> list[bool]:
        """Whether each segment holds."""
        return [
            bits == segment.conditions.all_hold
            for bits, segment in zip(self.segment_bits, self.snapshot.segments, strict=True)
        ]

    def _apply_parents(self) -> None:
        """Takes the parents into account. Parents have none themselves, so one pass is enough."""
        alone = {
            position: unmet_parents(self.snapshot, self.outcomes, position)
            for position in self.snapshot.children
        }
        for position, unmet in alone.items():
            if unmet:
                outcome = FlagOutcome(*self.outcomes[position])
                self.outcomes[position] = outcome._replace(on=False, pick=NONE, unmet=unmet)

    def __len__(self) -> int:
        return len(self.outcomes)

    def pairs(self) -> Iterator[tuple[CompiledFlag, FlagOutcome]]:
        """Every flag with its outcome."""
        for flag, outcome in zip(self.snapshot.flags, self.outcomes, strict=True):
            yield flag, FlagOutcome(*outcome)

    def pair(self, name: str) -> tuple[CompiledFlag, FlagOutcome]:
        """The flag of this name with its outcome. Raises KeyError if there is none."""
        position = self.snapshot.positions[name]
        return self.snapshot.flags[position], FlagOutcome(*self.outcomes[position])

    def variant(self, flag: CompiledFlag, outcome: FlagOutcome) -> str | None:
        """The name of the variant that an application gets, None if it gets none."""
        return variant_name(flag, outcome)

    def sticky(self, stickiness: str) -> tuple[str, str] | None:
        """The field and the value that a stickiness hashes for this context, None if there is none."""
        field = sticky_field(self.context, stickiness)
        return None if field is None else (field, self.context.values[field])


def evaluate(snapshot: Snapshot, context: Context, *, now: Moment, random: Random) -> Evaluation:
    """Evaluates every flag of a snapshot. `random` returns numbers in [0, 1)."""
    return Evaluation(snapshot, context.at(now), random)


def strategy_outcomes(strategies: tuple[CompiledStrategy, ...], run: Run) -> list[StrategyOutcome]:
    """Evaluates the strategies of a flag, every one of them, so that every one can be explained."""
    values, known, held, random = run
    outcomes: list[StrategyOutcome] = []
    for strategy in strategies:
        conditions = strategy.conditions
        bits = known[conditions.position]
        if bits is None:
            bits = known[conditions.position] = conditions.bits(values)
        verdict: bool | None = bits == strategy.all_hold
        if strategy.segments:
            verdict = verdict and all(map(held.__getitem__, strategy.segments))
        bucket = 0
        rollout = strategy.rollout
        if rollout is not None:
            identifier = values[rollout.column]
            if identifier is not None:
                bucket = murmur3(rollout.key + identifier, ROLLOUT_SEED, False) % 100 + 1
            elif rollout.draws:
                bucket = int(random() * 100) + 1
            else:
                verdict = False
            verdict = verdict and bucket <= rollout.threshold
        elif strategy.mode is not Mode.OPEN:
            verdict = _settled(strategy.mode, verdict)
        variants = strategy.variants
        if variants is None:
            outcomes.append((verdict, bits, bucket, NONE, 0))
        else:
            place = variants.place(values[variants.column], random)
            outcomes.append((verdict, bits, bucket, bisect_left(variants.limits, place), place))
    return outcomes


def _settled(mode: Mode, verdict: bool | None) -> bool | None:
    """The verdict where it is not the conditions alone that decide."""
    if mode is Mode.NEVER:
        return False
    return None if verdict or mode is Mode.DISABLED else False


def flag_outcome(flag: CompiledFlag, run: Run) -> PlainOutcome:
    """Evaluates one flag as if it had no parents."""
    outcomes = strategy_outcomes(flag.strategies, run)
    decided = NONE
    for outcome in outcomes:
        decided += 1
        if outcome[VERDICT]:
            break
    else:
        decided = NONE
    result: bool | None = True
    if decided == NONE or flag.fault is not None:
        result = _without_pass(flag, outcomes)
    on = result is True and flag.enabled
    pick = place = NONE
    if on and flag.variants is not None and (decided == NONE or outcomes[decided][PICK] == NONE):
        pick, place = flag.variants.pick(run.values, run.random)
    return result, on, decided, pick, place, outcomes, ()


def _without_pass(flag: CompiledFlag, outcomes: list[StrategyOutcome]) -> bool | None:
    """The strategies' result where none passed, or where SDKs cannot read the flag."""
    if flag.fault is not None:
        return False
    if not outcomes:
        return flag.enabled
    for strategy, outcome in zip(flag.strategies, outcomes, strict=True):
        if outcome[VERDICT] is None and strategy.counts:
            return None
    return False
