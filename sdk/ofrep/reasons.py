"""OpenFeature's reasons: what kind of decision led to a flag's value."""

from enum import StrEnum

from playground.engine.chance import state_over_calls
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import (
    BITS,
    BUCKET,
    Cause,
    FlagOutcome,
    ParentProblem,
    State,
    StrategyOutcome,
    cause_of,
    deciding_parent,
)
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import NONE
from sdk.ofrep.values import Choice


class Reason(StrEnum):
    STATIC = "STATIC"
    """Everybody gets the same, always."""
    TARGETING_MATCH = "TARGETING_MATCH"
    """A condition decided, or another flag."""
    SPLIT = "SPLIT"
    """A percentage or the weights of variants decided."""
    DISABLED = "DISABLED"
    """The flag is off in the environment."""
    UNKNOWN = "UNKNOWN"
    """Only an SDK could tell, or SDKs cannot read the flag."""


def find_reason(
    evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome, choice: Choice | None
) -> Reason:
    cause = cause_of(flag, outcome)
    if cause is Cause.SWITCHED_OFF:
        return Reason.DISABLED
    if cause in (Cause.UNREADABLE, Cause.ONLY_SDK):
        return Reason.UNKNOWN
    if is_static(flag):
        return Reason.STATIC
    if cause is Cause.PARENT:
        unknown = deciding_parent(outcome).problem is ParentProblem.UNKNOWN
        return Reason.UNKNOWN if unknown else Reason.TARGETING_MATCH
    return Reason.SPLIT if _is_split(evaluation, flag, outcome, choice) else Reason.TARGETING_MATCH


def is_static(flag: CompiledFlag) -> bool:
    """Whether every context gets the same: no condition, no percentage between, no choice of variants, no parent."""
    variant_lists = [flag.variants, *(strategy.variants for strategy in flag.strategies)]
    return (
        not flag.parents
        and not any(variants and (variants.overrides or variants.divides) for variants in variant_lists)
        and all(_is_unconditional(strategy) for strategy in flag.strategies if strategy.counts)
    )


def _is_unconditional(strategy: CompiledStrategy) -> bool:
    rollout = strategy.rollout
    if strategy.conditions.constraints or strategy.segments or strategy.missing_segments:
        return False
    return rollout is None or rollout.threshold <= 0 or (rollout.draws and rollout.threshold >= 100)


def _is_split(
    evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome, choice: Choice | None
) -> bool:
    if not outcome.on:
        return any(
            _is_outside(evaluation, strategy, strategy_outcome)
            for strategy, strategy_outcome in zip(flag.strategies, outcome.strategies, strict=True)
        )
    if choice is not None and choice.is_by_weight:
        return True
    rollout = flag.strategies[outcome.decided].rollout if outcome.decided != NONE else None
    return rollout is not None and rollout.threshold < 100


def _is_outside(
    evaluation: Evaluation, strategy: CompiledStrategy, strategy_outcome: StrategyOutcome
) -> bool:
    """Whether only the rollout kept a strategy off."""
    rollout = strategy.rollout
    return (
        rollout is not None
        and strategy_outcome[BUCKET] > rollout.threshold
        and _conditions_hold(evaluation, strategy, strategy_outcome)
    )


def _conditions_hold(
    evaluation: Evaluation, strategy: CompiledStrategy, strategy_outcome: StrategyOutcome
) -> bool:
    return (
        strategy.counts
        and strategy_outcome[BITS] == strategy.all_hold
        and all(evaluation.holds(segment) for segment in strategy.segments)
    )


def find_bucket(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome) -> int | None:
    """The bucket, from 1 to 100, that decided, or that the rollout did not reach; None if none was hashed."""
    for position, (strategy, strategy_outcome) in enumerate(
        zip(flag.strategies, outcome.strategies, strict=True)
    ):
        rollout = strategy.rollout
        if rollout is None or not strategy_outcome[BUCKET] or evaluation.values[rollout.column] is None:
            continue
        if position == outcome.decided or (
            outcome.decided == NONE and _is_outside(evaluation, strategy, strategy_outcome)
        ):
            return strategy_outcome[BUCKET]
    return None


def is_random(
    evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome, choice: Choice | None, *, drawn: bool
) -> bool:
    """Whether the next request with the same context may get something else: there was nothing to hash.

    `drawn`: a bucket of the flag or of a parent may have been drawn (``playground.engine.chance.drawn_flags``).
    """
    if drawn and state_over_calls(evaluation, flag, outcome)[0] is State.RANDOM:
        return True
    return choice is not None and choice.is_by_weight and evaluation.values[choice.variants.column] is None


def lacks_targeting_key(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome) -> bool:
    """Whether a flag is off only because a rollout, its own or a parent's, is by userId and the context has none."""
    if outcome.on or not flag.enabled or flag.fault is not None:
        return False
    if outcome.result is False:
        return any(
            _has_nothing_to_hash(evaluation, strategy, strategy_outcome)
            for strategy, strategy_outcome in zip(flag.strategies, outcome.strategies, strict=True)
        )
    return any(
        lacks_targeting_key(evaluation, *evaluation.pair(unmet.parent.name))
        for unmet in outcome.unmet
        if unmet.problem is ParentProblem.OFF
    )


def _has_nothing_to_hash(
    evaluation: Evaluation, strategy: CompiledStrategy, strategy_outcome: StrategyOutcome
) -> bool:
    rollout = strategy.rollout
    return (
        rollout is not None
        and rollout.stickiness == "userId"
        and rollout.threshold > 0
        and evaluation.values[rollout.column] is None
        and _conditions_hold(evaluation, strategy, strategy_outcome)
    )
