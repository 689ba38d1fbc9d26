"""The value of a flag for OpenFeature, and the reason: the kind of decision that led to it."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from flagadmin.core.errors import ValidationError
from playground.engine.chance import find_state_over_calls
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.literals import mapping_of, to_text
from playground.engine.outcomes import (
    BITS,
    BUCKET,
    ONLY_SDK,
    PARENT,
    PICK,
    PLACE,
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
from playground.engine.variants import NONE, CompiledVariants
from playground.response.fragments import FlagFragments

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


class Choice(NamedTuple):
    """The variant of a flag: its index, and its place among the weights (0: an override decided)."""

    variants: CompiledVariants
    pick: int
    place: int

    @property
    def name(self) -> str:
        return self.variants.names[self.pick]

    @property
    def is_by_weight(self) -> bool:
        return self.place > 0 and self.variants.divides


def find_choice(flag: CompiledFlag, outcome: FlagOutcome) -> Choice | None:
    """The variant that the context gets; None if it gets none."""
    if not outcome.on:
        return None
    if outcome.decided != NONE:
        variants, strategy_outcome = (
            flag.strategies[outcome.decided].variants,
            outcome.strategies[outcome.decided],
        )
        if variants is not None and strategy_outcome[PICK] != NONE:
            return Choice(variants, strategy_outcome[PICK], strategy_outcome[PLACE])
    if flag.variants is None or outcome.pick == NONE:
        return None
    return Choice(flag.variants, outcome.pick, outcome.place)


def read_value(outcome: FlagOutcome, fragments: FlagFragments) -> Any:
    """The payload, or without one whether the flag is on. Raises ValidationError for a payload of the wrong type."""
    if not (outcome.on and fragments.has_payloads):
        return outcome.on
    if outcome.decided != NONE and (pick := outcome.strategies[outcome.decided][PICK]) != NONE:
        variant = fragments.strategies[outcome.decided].variant(pick)
    elif outcome.pick != NONE:
        variant = fragments.picks[outcome.pick]
    else:
        return True
    return _read_variant(variant)


def _read_variant(variant: bytes) -> Any:
    """The value of a variant, which is stored without its last brace."""
    payload = orjson.loads(variant + b"}").get("payload")
    return parse_payload(mapping_of(payload)) if payload else True


def parse_payload(payload: Mapping[str, Any]) -> Any:
    """The value of a payload ``{type, value}``. JSON and numbers keep their stored spelling: 10.0 has a decimal point
    and 10 has none, and no digit is lost.

    Raises ValidationError for a payload that does not match its type.
    """
    kind, text = payload.get("type"), to_text(payload.get("value"))
    if kind == "json":
        return _parse_json(text)
    return _parse_number(text) if kind == "number" else text


def _parse_json(text: str) -> orjson.Fragment:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValidationError(f"The payload of the variant is not JSON: {error}.") from error
    return orjson.Fragment(text)


def _parse_number(text: str) -> Any:
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValidationError("The payload of the variant is not a number.")
    return orjson.Fragment(text) if _JSON_NUMBER.fullmatch(text) else number


class Reason(StrEnum):
    STATIC = "STATIC"
    """Everyone always gets the same result."""
    TARGETING_MATCH = "TARGETING_MATCH"
    """A condition or another flag decided."""
    SPLIT = "SPLIT"
    """A percentage or the weights of variants decided."""
    DISABLED = "DISABLED"
    """The flag is off in the environment."""
    UNKNOWN = "UNKNOWN"
    """Only an SDK can tell, or SDKs cannot read the flag."""


STATIC, TARGETING_MATCH, SPLIT, DISABLED, UNKNOWN = Reason  # local names, as in `playground.engine.outcomes`


def find_reason(
    flag: CompiledFlag,
    outcome: FlagOutcome,
    choice: Choice | None,
    outside: Collection[int],
    *,
    is_static: bool,
) -> Reason:
    """`outside`: see below. `is_static`: whether everyone gets the same result (`Snapshot.static`)."""
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
    """The positions of the strategies that only their rollout kept off."""
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
    """The bucket, from 1 to 100, that decided or that the rollout did not reach; None if none was hashed."""
    _, _, decided, _, _, strategies, _ = outcome
    for position in outside if decided == NONE else (decided,):
        rollout, bucket = flag.strategies[position].rollout, strategies[position][BUCKET]
        if rollout is not None and bucket and evaluation.values[rollout.column] is not None:
            return bucket
    return None


def is_random(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome, *, drawn: bool) -> bool:
    """Whether the next request with the same context may get another result, because there was nothing to hash.

    `drawn`: a bucket of the flag or of a parent may have been drawn (`playground.engine.chance.find_drawn_flags`).
    """
    if drawn and find_state_over_calls(evaluation, flag, outcome)[0] is State.RANDOM:
        return True
    choice = find_choice(flag, outcome)
    return choice is not None and choice.is_by_weight and evaluation.values[choice.variants.column] is None


def lacks_targeting_key(evaluation: Evaluation, flag: CompiledFlag, outcome: FlagOutcome) -> bool:
    """Whether a flag is off only because its rollout, or a parent's, uses userId and the context has none."""
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
