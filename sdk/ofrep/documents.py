"""The documents of OFREP: what a provider gets for each flag."""

from collections.abc import Mapping
from typing import Any

import orjson

from flagadmin.core.errors import ValidationError
from playground.engine import sentences
from playground.engine.chance import drawn_flags
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.hashing import Random
from playground.engine.outcomes import FlagOutcome
from playground.engine.reasons import Reasons
from playground.evaluation_metrics import EVALUATIONS
from playground.response.fragments import FlagFragments
from sdk.evaluation.prepared import Prepared
from sdk.ofrep.errors import FlagNotFound, TargetingKeyMissing, describe_failure
from sdk.ofrep.reasons import (
    DISABLED,
    Reason,
    find_bucket,
    find_outside,
    find_reason,
    is_random,
    lacks_targeting_key,
)
from sdk.ofrep.values import find_choice, read_value

EVALUATED = EVALUATIONS.labels("ofrep")

# What browsers are told: conditions, their values and percentages are for the server's side only.
WITHOUT_DEFINITIONS: Mapping[tuple[Reason, bool], str] = {
    (Reason.STATIC, True): sentences.FOR_EVERYONE,
    (Reason.STATIC, False): "Off for everyone",
    (Reason.TARGETING_MATCH, True): "Its conditions hold",
    (Reason.TARGETING_MATCH, False): "Its conditions do not hold",
    (Reason.SPLIT, True): "A percentage or the weights of variants decided",
    (Reason.SPLIT, False): "Outside the rollout",
    (Reason.UNKNOWN, False): "It cannot be evaluated here",
}


class Resolver:
    """Resolves flags of one evaluation. `browser`: for a frontend token, which must not see definitions."""

    def __init__(self, evaluation: Evaluation, *, browser: bool) -> None:
        self._evaluation = evaluation
        self._reasons = Reasons(evaluation)
        self._has_key = evaluation.context.lookup("userId") is not None
        self._drawn = drawn_flags(evaluation)
        self._static = evaluation.snapshot.static
        self._browser = browser

    def flag(self, position: int, fragments: FlagFragments) -> dict[str, Any]:
        """OFREP's evaluationSuccess of the flag at a position. Raises TargetingKeyMissing, and ValidationError for an
        unreadable payload.

        `variant` is never missing, because providers read it unasked: without one it is "enabled" or "disabled".
        """
        evaluation = self._evaluation
        flag, outcome = evaluation.snapshot.flags[position], FlagOutcome(*evaluation.outcomes[position])
        if not self._has_key and lacks_targeting_key(evaluation, flag, outcome):
            raise TargetingKeyMissing(
                f"The rollout of flag {flag.name} is by userId: the context needs a targetingKey."
            )
        choice = find_choice(flag, outcome)
        outside = () if outcome.on else find_outside(evaluation, flag, outcome)
        reason = find_reason(flag, outcome, choice, outside, is_static=self._static[position])
        metadata: dict[str, Any] = {
            "why": self._why(flag, outcome, reason),
            "project": flag.project,
            "stale": fragments.stale,
        }
        if is_random(evaluation, flag, outcome, choice, drawn=position in self._drawn):
            metadata["random"] = True
        if (bucket := find_bucket(evaluation, flag, outcome, outside)) is not None:
            metadata["bucket"] = bucket
        return {
            "key": flag.name,
            "reason": reason,
            "variant": choice.name if choice else "enabled" if outcome.on else "disabled",
            "value": read_value(outcome, fragments),
            "metadata": metadata,
        }

    def _why(self, flag: CompiledFlag, outcome: FlagOutcome, reason: Reason) -> str:
        if not self._browser or reason is DISABLED:
            return self._reasons.flag(flag, outcome)
        return WITHOUT_DEFINITIONS[reason, outcome.on]


def render_flag(prepared: Prepared, name: str, context: Context, random: Random, *, browser: bool) -> bytes:
    """One flag; only it and its parents are evaluated. Raises FlagNotFound, and what ``Resolver.flag`` does."""
    snapshot = prepared.snapshot
    position = snapshot.positions.get(name)
    if position is None:
        environment = snapshot.environment
        raise FlagNotFound(f"Active flag {name} not found in {environment} with this token's projects.")
    evaluation = Evaluation(prepared.only(name), context, random)
    EVALUATED.inc()
    resolver = Resolver(evaluation, browser=browser)
    fragments = prepared.flags[position]
    return orjson.dumps(resolver.flag(evaluation.snapshot.positions[name], fragments))


def render_flags(
    prepared: Prepared, context: Context, random: Random, *, browser: bool, **more: Any
) -> bytes:
    """``{"flags": [...]}`` and ``more``: every flag by name, each an evaluationSuccess or an evaluationFailure."""
    evaluation = Evaluation(prepared.snapshot, context, random)
    EVALUATED.inc(len(prepared.flags))
    resolver = Resolver(evaluation, browser=browser)
    flags = []
    for position, fragments in enumerate(prepared.flags):
        try:
            flags.append(resolver.flag(position, fragments))
        except ValidationError as error:
            flags.append(describe_failure(error, prepared.snapshot.flags[position].name))
    return orjson.dumps({"flags": flags} | more)
