"""Evaluates a snapshot for one context: the result of every flag, and the data to explain it.

Time and randomness are arguments. Outcomes are plain tuples, made once per flag and read by position. Reasons, pages
and answers read everything from them; nothing is evaluated twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from playground.engine.context import Context, PointInTime, Values, find_sticky_field
from playground.engine.flags import CompiledFlag, Parent
from playground.engine.hashing import Random
from playground.engine.outcomes import (
    PICK,
    VERDICT,
    FlagOutcome,
    ParentProblem,
    PlainOutcome,
    State,
    StrategyOutcome,
    Unmet,
    find_state,
    find_variant_name,
)
from playground.engine.snapshot import Snapshot
from playground.engine.variants import NONE


class Evaluation:
    """The outcomes of one snapshot for one context, in the order of `snapshot.flags`."""

    def __init__(self, snapshot: Snapshot, context: Context, random: Random) -> None:
        self.snapshot = snapshot
        self.context = context
        self.values = snapshot.values(context)
        self.result = snapshot.batch.run(self.values, random)
        self._random = random

    @cached_property
    def outcomes(self) -> list[PlainOutcome]:
        """The outcome of every flag."""
        self.outcomes = self._find_outcomes(self._random)  # which parents read
        self._apply_parents(self._random)
        return self.outcomes

    def _find_outcomes(self, random: Random) -> list[PlainOutcome]:
        """The outcome of every flag, ignoring parents."""
        batch, values = self.snapshot.batch, self.values
        by_strategy = self.result.outcomes()
        start = 0
        outcomes: list[PlainOutcome] = []
        for flag, end, decidable in zip(self.snapshot.flags, batch.ends, batch.decidable, strict=True):
            strategies = by_strategy[start:end]
            start = end
            decided = 0
            for outcome in strategies:
                if outcome[VERDICT]:
                    break
                decided += 1
            else:
                outcomes.append(
                    (False, False, NONE, NONE, NONE, strategies, ())
                    if decidable
                    else _make_outcome_without_pass(flag, strategies, values, random)
                )
                continue
            pick = place = NONE
            passed = flag.fault is None
            on = passed and flag.enabled
            if on and flag.variants is not None and outcome[PICK] == NONE:
                pick, place = flag.variants.pick(values, random)
            outcomes.append((passed, on, decided, pick, place, strategies, ()))
        return outcomes

    def _apply_parents(self, random: Random) -> None:
        """Applies the parents. They have no parents themselves, so one pass is enough."""

        def variant_of(parent: int) -> str | None:
            return self._find_variant_for_child(parent, random)

        alone = {
            position: find_unmet_parents(self.snapshot, self.outcomes, position, variant_of)
            for position in self.snapshot.children
        }
        for position, unmet in alone.items():
            if unmet:
                outcome = FlagOutcome(*self.outcomes[position])
                self.outcomes[position] = outcome._replace(on=False, pick=NONE, unmet=unmet)

    def _find_variant_for_child(self, position: int, random: Random) -> str | None:
        """The variant of a parent that is on. SDKs evaluate it again for this, with newly drawn buckets, so other
        strategies may pass, or none, which leaves the flag's own variants.
        """
        flag = self.snapshot.flags[position]
        if not self.draws_strategy_variants(flag):
            return find_variant_name(flag, self.outcomes[position])
        again = Evaluation(self.snapshot.only(flag.name), self.context, random)
        flag, outcome = again.pair(flag.name)
        if outcome.on or flag.variants is None:
            return find_variant_name(flag, outcome)
        index, _ = flag.variants.pick(again.values, random)
        return None if index == NONE else flag.variants.names[index]

    def draws_strategy_variants(self, flag: CompiledFlag) -> bool:
        """Whether the passing strategy is random, and one of them has variants."""
        return any(strategy.variants is not None for strategy in flag.strategies) and any(
            strategy.rollout is not None
            and strategy.rollout.draws
            and self.values[strategy.rollout.column] is None
            for strategy in flag.strategies
        )

    def holds(self, segment: int) -> bool:
        """Whether the segment at a position holds."""
        return self.result.segments_hold[segment]

    def __len__(self) -> int:
        return len(self.outcomes)

    def pairs(self) -> Iterator[tuple[CompiledFlag, FlagOutcome]]:
        """Every flag with its outcome."""
        for flag, outcome in zip(self.snapshot.flags, self.outcomes, strict=True):
            yield flag, FlagOutcome(*outcome)

    def pair(self, name: str) -> tuple[CompiledFlag, FlagOutcome]:
        """The flag of this name with its outcome. Raises KeyError if the snapshot does not have it."""
        position = self.snapshot.positions[name]
        return self.snapshot.flags[position], FlagOutcome(*self.outcomes[position])

    def variant(self, flag: CompiledFlag, outcome: FlagOutcome) -> str | None:
        """The name of the variant that an application gets; None if it gets none."""
        return find_variant_name(flag, outcome)

    def sticky(self, stickiness: str) -> tuple[str, str] | None:
        """The context field and value that a stickiness hashes; None if the context has none."""
        field = find_sticky_field(self.context, stickiness)
        return None if field is None else (field, self.context.values[field])


def evaluate(snapshot: Snapshot, context: Context, *, now: PointInTime, random: Random) -> Evaluation:
    """Evaluates every flag of a snapshot. `random` returns numbers in [0, 1)."""
    return Evaluation(snapshot, context.at(now), random)


def _make_outcome_without_pass(
    flag: CompiledFlag, strategies: list[StrategyOutcome], values: Values, random: Random
) -> PlainOutcome:
    """The outcome of a flag none of whose strategies passed."""
    if not strategies and flag.enabled and flag.fault is None:
        pick, place = flag.variants.pick(values, random) if flag.variants is not None else (NONE, NONE)
        return True, True, NONE, pick, place, strategies, ()
    unknown = flag.fault is None and any(
        outcome[VERDICT] is None and strategy.counts
        for strategy, outcome in zip(flag.strategies, strategies, strict=True)
    )
    return None if unknown else False, False, NONE, NONE, NONE, strategies, ()


VariantOf = Callable[[int], str | None]
"""The variant that the parent at a position gives its children."""


def find_unmet_parents(
    snapshot: Snapshot, outcomes: Sequence[PlainOutcome], position: int, variant_of: VariantOf
) -> tuple[Unmet, ...]:
    """The parents of the flag at a position that are not in the required state."""
    unmet = []
    for parent in snapshot.flags[position].parents:
        problem = _find_problem(snapshot, outcomes, parent, variant_of)
        if problem is not None:
            unmet.append(Unmet(parent, problem))
    return tuple(unmet)


def _find_problem(
    snapshot: Snapshot, outcomes: Sequence[PlainOutcome], parent: Parent, variant_of: VariantOf
) -> ParentProblem | None:
    position = snapshot.positions.get(parent.name)
    if position is None:
        return ParentProblem.MISSING
    flag, outcome = snapshot.flags[position], outcomes[position]
    if flag.parents:
        return ParentProblem.CHAINED
    state = find_state(flag, outcome)
    if state is State.UNKNOWN:
        return ParentProblem.UNKNOWN
    if (state is State.ON) is not parent.enabled:
        return ParentProblem.OFF if parent.enabled else ParentProblem.ON
    # As in SDKs, a parent without a variant satisfies any.
    if parent.variants and variant_of(position) not in (None, *parent.variants):
        return ParentProblem.VARIANT
    return None
