"""The documents of OFREP: what a provider gets for each flag."""

import random
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from flagadmin.core.errors import ValidationError
from playground.engine import sentences
from playground.engine.chance import drawn_flags
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation, evaluate
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import FlagOutcome
from playground.engine.reasons import Reasons
from playground.evaluation_metrics import EVALUATIONS
from playground.response.fragments import FlagFragments
from playground.response.snapshot import ResponseSnapshot
from sdk.ofrep.errors import FlagNotFound, TargetingKeyMissing, describe_failure
from sdk.ofrep.reasons import Reason, find_bucket, find_reason, is_random, lacks_targeting_key
from sdk.ofrep.values import Choice, find_choice, read_value

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
        names = evaluation.snapshot.names
        self._has_key = evaluation.context.lookup("userId") is not None
        self._drawn = {names[position] for position in drawn_flags(evaluation)}
        self._browser = browser

    def flag(self, flag: CompiledFlag, outcome: FlagOutcome, fragments: FlagFragments) -> dict[str, Any]:
        """OFREP's evaluationSuccess. Raises TargetingKeyMissing, and ValidationError for an unreadable payload.

        `variant` is never missing, because providers read it unasked: without one it is "enabled" or "disabled".
        """
        if not self._has_key and lacks_targeting_key(self._evaluation, flag, outcome):
            raise TargetingKeyMissing(
                f"The rollout of flag {flag.name} is by userId: the context needs a targetingKey."
            )
        choice = find_choice(flag, outcome)
        reason = find_reason(self._evaluation, flag, outcome, choice)
        return {
            "key": flag.name,
            "reason": reason,
            "variant": choice.name if choice else "enabled" if outcome.on else "disabled",
            "value": read_value(outcome, fragments),
            "metadata": self._metadata(flag, outcome, fragments, choice, reason),
        }

    def _metadata(
        self,
        flag: CompiledFlag,
        outcome: FlagOutcome,
        fragments: FlagFragments,
        choice: Choice | None,
        reason: Reason,
    ) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "why": self._why(flag, outcome, reason),
            "project": flag.project,
            "stale": fragments.stale,
        }
        if is_random(self._evaluation, flag, outcome, choice, drawn=flag.name in self._drawn):
            metadata["random"] = True
        if (bucket := find_bucket(self._evaluation, flag, outcome)) is not None:
            metadata["bucket"] = bucket
        return metadata

    def _why(self, flag: CompiledFlag, outcome: FlagOutcome, reason: Reason) -> str:
        if not self._browser or reason is Reason.DISABLED:
            return self._reasons.flag(flag, outcome)
        return WITHOUT_DEFINITIONS[reason, outcome.on]


def render_flag(
    compiled: ResponseSnapshot, name: str, context: Context, now: datetime, *, browser: bool
) -> bytes:
    """One flag; only it and its parents are evaluated. Raises FlagNotFound, and what ``Resolver.flag`` does."""
    position = compiled.snapshot.positions.get(name)
    if position is None:
        environment = compiled.snapshot.environment
        raise FlagNotFound(f"Active flag {name} not found in {environment} with this token's projects.")
    evaluation = evaluate(compiled.snapshot.only(name), context, now=now, random=random.random)
    EVALUATIONS.labels("ofrep").inc()
    resolver = Resolver(evaluation, browser=browser)
    return orjson.dumps(resolver.flag(*evaluation.pair(name), compiled.flags[position]))


def render_flags(
    compiled: ResponseSnapshot, context: Context, now: datetime, *, browser: bool, **more: Any
) -> bytes:
    """``{"flags": [...]}`` and ``more``: every flag by name, each an evaluationSuccess or an evaluationFailure."""
    evaluation = evaluate(compiled.snapshot, context, now=now, random=random.random)
    EVALUATIONS.labels("ofrep").inc(len(compiled.flags))
    resolver = Resolver(evaluation, browser=browser)
    flags = []
    for (flag, outcome), fragments in zip(evaluation.pairs(), compiled.flags, strict=True):
        try:
            flags.append(resolver.flag(flag, outcome, fragments))
        except ValidationError as error:
            flags.append(describe_failure(error, flag.name))
    return orjson.dumps({"flags": flags} | more)
