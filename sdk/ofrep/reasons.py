"""OpenFeature's reasons: what kind of decision led to a flag's value."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from playground.engine.chance import find_state_over_calls
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import (
    BITS,
    BUCKET,
    ONLY_SDK,
    PARENT,
    SWITCHED_OFF,
    UNREADABLE,
    FlagOutcome,
    ParentProblem,
    PlainOutcome,
    State,
    StrategyOutcome,
    find_cause,
    find_deciding_parent,
)
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import NONE
from sdk.ofrep.values import Choice, find_choice


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


STATIC, TARGETING_MATCH, SPLIT, DISABLED, UNKNOWN = Reason  # as in `playground.engine.outcomes`


def find_reason(
    flag: CompiledFlag,
    outcome: FlagOutcome,
    choice: Choice | None,
    outside: Collection[int],
    *,
    is_static: bool,
) -> Reason:
    """`outside`: see below. `is_static`: whether everybody gets the same (`Snapshot.static`)."""
    cause = find_cause(flag, outcome)
    if cause is SWITCHED_OFF:
        return DISABLED
    if cause is UNREADABLE or cause is ONLY_SDK:
        return UNKNOWN
    if is_static:
        return STATIC
    if cause is PARENT:
        unknown = find_deciding_parent(outcome).problem is ParentProblem.UNKNOWN
        return UNKNOWN if unknown else TARGETING_MATCH
    return SPLIT if outside or _is_split(flag, outcome, choice) else TARGETING_MATCH


def _is_split(flag: CompiledFlag, outcome: FlagOutcome, choice: Choice | None) -> bool:
    if not outcome.on:
        return False
    if choice is not None and choice.is_by_weight:
        return True
    rollout = flag.strategies[outcome.decided].rollout if outcome.decided != NONE else None
    return rollout is not None and rollout.threshold < 100


def find_outside(
    evaluation: Evaluation, flag: CompiledFlag, outcomes: Sequence[StrategyOutcome]
) -> list[int]:
    """The positions of the strategies of a flag that only their rollout kept off."""
    outside = []
    for position, strategy in enumerate(flag.strategies):
        rollout, its_outcome = strategy.rollout, outcomes[position]
        if (
            rollout is not None
            and its_outcome[BUCKET] > rollout.threshold
            and _conditions_hold(evaluation, strategy, its_outcome)
        ):
            outside.append(position)
    return outside


def _conditions_hold(
    evaluation: Evaluation, strategy: CompiledStrategy, strategy_outcome: StrategyOutcome
) -> bool:
    return (
        strategy.counts
        and strategy_outcome[BITS] == strategy.all_hold
        and (not strategy.segments or all(map(evaluation.holds, strategy.segments)))
    )


def find_bucket(
    evaluation: Evaluation, flag: CompiledFlag, outcome: PlainOutcome, outside: Collection[int]
) -> int | None:
    """The bucket, from 1 to 100, that decided, or that the rollout did not reach; None if none was hashed."""
    _, _, decided, _, _, strategies, _ = outcome
    for position in outside if decided == NONE else (decided,):
        rollout, bucket = flag.strategies[position].rollout, strategies[position][BUCKET]
        if rollout is not None and bucket and evaluation.values[rollout.column] is not None:
            return bucket
    return None


def is_random(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome, *, drawn: bool) -> bool:
    """Whether the next request with the same context may get another result: there was nothing to hash.

    `drawn`: a bucket of the flag or of a parent may have been drawn (`playground.engine.chance.find_drawn_flags`).
    """
    if drawn and find_state_over_calls(evaluation, flag, outcome)[0] is State.RANDOM:
        return True
    choice = find_choice(flag, outcome)
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
