"""The share of calls on which a flag with a random rollout is on.

Without an identifier, each call draws the bucket of a rollout. An evaluation draws once; pages show the share.
"""

from __future__ import annotations

from operator import sub

from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag, Parent
from playground.engine.outcomes import (
    BITS,
    VERDICT,
    FlagOutcome,
    ParentProblem,
    State,
    StrategyOutcome,
    find_state,
)
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import NONE, CompiledVariants

ShareOfCalls = float | None
"""The share of calls on which a flag is on; None if every call has the same result."""


def find_drawn_flags(evaluation: Evaluation) -> set[int]:
    """The positions of the flags whose result may be random for this context."""
    drawing, values = evaluation.snapshot.drawing, evaluation.values
    return set().union(*(flags for column, flags in drawing.items() if values[column] is None))


def find_state_over_calls(
    evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome
) -> tuple[State, ShareOfCalls]:
    """The state of a flag over many calls with one context; for State.RANDOM also the share, from 0 to 1."""
    if not flag.enabled or flag.fault is not None or not _draws(evaluation, flag):
        return find_state(flag, outcome), None
    own, decidable = _compute_own_share(evaluation, flag, outcome)
    share = own * _compute_parents_share(evaluation, flag, outcome)
    if not 0 < share < 1:
        return find_state(flag, outcome), None
    return (State.RANDOM, share) if decidable else (State.UNKNOWN, None)


def compute_drawn_share(
    evaluation: Evaluation, strategy: CompiledStrategy, outcome: StrategyOutcome
) -> ShareOfCalls:
    """The share of calls on which a strategy with a drawn bucket passes; None if its bucket is not drawn."""
    rollout = strategy.rollout
    if rollout is None or not rollout.draws or evaluation.values[rollout.column] is not None:
        return None
    if outcome[BITS] != strategy.all_hold or not all(map(evaluation.holds, strategy.segments)):
        return None
    return min(max(rollout.threshold, 0), 100) / 100


def _draws(evaluation: Evaluation, flag: CompiledFlag) -> bool:
    """Whether the result of a flag or of a parent may be random. For nearly all flags, this check suffices."""
    drawn = any(
        strategy.rollout is not None
        and strategy.rollout.draws
        and evaluation.values[strategy.rollout.column] is None
        for strategy in flag.strategies
    )
    positions, flags = evaluation.snapshot.positions, evaluation.snapshot.flags
    parents = [flags[positions[parent.name]] for parent in flag.parents if parent.name in positions]
    return (
        drawn
        or any(_draws(evaluation, parent) for parent in parents if not parent.parents)
        or any(evaluation.values[column] is None for column in evaluation.snapshot.variant_columns(flag))
    )


def _compute_own_share(
    evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome
) -> tuple[float, bool]:
    """The share of calls on which a strategy passes, and whether a server can evaluate every strategy."""
    if not flag.strategies:
        return 1.0, True
    off, decidable = 1.0, True
    for strategy, strategy_outcome in zip(flag.strategies, outcome.strategies, strict=True):
        if not strategy.counts:
            continue
        if strategy_outcome[VERDICT] is None:
            decidable = False
            continue
        drawn = compute_drawn_share(evaluation, strategy, strategy_outcome)
        off *= 1 - (float(bool(strategy_outcome[VERDICT])) if drawn is None else drawn)
    return 1 - off, decidable or off == 0


def _compute_parents_share(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome) -> float:
    """The share of calls on which every parent is in the required state."""
    share = 1.0
    unmet = {unmet_parent.parent: unmet_parent.problem for unmet_parent in outcome.unmet}
    for parent in flag.parents:
        problem = unmet.get(parent)
        if problem in (ParentProblem.MISSING, ParentProblem.CHAINED):
            return 0.0
        state, on = find_state_over_calls(evaluation, *evaluation.pair(parent.name))
        if state is State.RANDOM and on is not None:
            share *= on if parent.enabled else 1 - on
        elif problem not in (None, ParentProblem.VARIANT):
            return 0.0
        share *= compute_variant_share(evaluation, parent)
    return share


def compute_variant_share(evaluation: Evaluation, parent: Parent) -> float:
    """The share of calls on which a parent that is on yields one of the required variants, or none.

    As in ``Evaluation``, its strategies are drawn again for this.
    """
    if not parent.variants:
        return 1.0
    flag, outcome = evaluation.pair(parent.name)
    share, left = 0.0, 1.0
    for strategy, strategy_outcome in zip(flag.strategies, outcome.strategies, strict=True):
        if not strategy.counts or strategy_outcome[VERDICT] is None:
            continue
        drawn = compute_drawn_share(evaluation, strategy, strategy_outcome)
        passes = float(bool(strategy_outcome[VERDICT])) if drawn is None else drawn
        share += left * passes * _compute_share(strategy.variants or flag.variants, parent, evaluation)
        left *= 1 - passes
    return share + left * _compute_share(flag.variants, parent, evaluation)


def _compute_share(variants: CompiledVariants | None, parent: Parent, evaluation: Evaluation) -> float:
    """The share of calls on which these variants yield a required one, or none."""
    if variants is None:
        return 1.0
    index, place = variants.pick(evaluation.values, lambda: 0.0)
    if place and evaluation.values[variants.column] is None:
        weights = map(sub, variants.limits, (0, *variants.limits))
        named = zip(variants.names, weights, strict=False)
        return sum(weight for name, weight in named if name in parent.variants) / variants.total
    return float(index == NONE or variants.names[index] in parent.variants)
