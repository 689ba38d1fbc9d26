"""Answers OpenFeature's providers for a context: from memory if nothing has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import random
from typing import Any
from urllib.parse import urlencode

import orjson

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.request_headers import is_listed
from playground.engine import sentences
from playground.engine.chance import find_drawn_flags
from playground.engine.context import Context
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.hashing import Random
from playground.engine.outcomes import PICK, FlagOutcome, PlainOutcome
from playground.engine.reasons import Reasons
from playground.engine.variants import NONE
from playground.evaluation_metrics import EVALUATIONS
from playground.response.fragments import FlagFragments
from sdk.evaluation.prepared import Answer, Chance, Prepared, Remembered
from sdk.ofrep.reasons import (
    DISABLED,
    Reason,
    find_bucket,
    find_choice,
    find_outside,
    find_reason,
    is_random,
    lacks_targeting_key,
    read_value,
)
from sdk.ofrep.request import FlagNotFound, TargetingKeyMissing, describe_failure

EVENTS, PARAMETER = "/ofrep/v1/events", "ticket"

remembered: Remembered[str, bytes] = Remembered()


def event_streams(ticket: str) -> list[dict[str, Any]]:
    """OFREP's ``eventStreams``. The stream is relative to the client's URL for the flags, for use behind any proxy."""
    uri = f"{EVENTS}?{urlencode({PARAMETER: ticket})}"
    return [{"type": "sse", "endpoint": {"requestUri": uri}}]


def answer_flags(
    prepared: Prepared,
    context: Context,
    known: str,
    *,
    browser: bool,
    streams: list[dict[str, Any]],
    may_evaluate: bool = True,
) -> Answer | None:
    """All flags for a context, which has its currentTime. ``known`` is the client's If-None-Match, or empty.

    The ETag depends on the flags, the context and the streams, so that a client with the answer needs no evaluation.
    None if an evaluation is needed but not allowed.
    """
    etag = f'"{prepared.digest(context, browser, streams)}"'
    if is_listed(known, etag):
        return Answer(etag, None, is_lasting=True)
    body = remembered.get(etag)
    if body is None:
        if not may_evaluate:
            return None
        chance = Chance()
        body = render_flags(prepared, context, chance, browser=browser, eventStreams=streams)
        if not chance.was_used:
            remembered.put(etag, body, len(body))
    return Answer(etag, body, is_lasting=True)


def answer_flag(prepared: Prepared, name: str, context: Context, *, browser: bool) -> Answer:
    """One flag for a context. Raises FlagNotFound, TargetingKeyMissing and ValidationError."""
    return Answer("", render_flag(prepared, name, context, random, browser=browser))


EVALUATED = EVALUATIONS.labels("ofrep")
MAX_KEPT = 1_000  # bytes of a constant part that is written once

# Reasons for browsers: conditions, their values and percentages must stay on the server's side.
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

    def __init__(self, evaluation: Evaluation, prepared: Prepared, *, browser: bool) -> None:
        snapshot = evaluation.snapshot
        self._evaluation = evaluation
        self._reasons = Reasons(evaluation)
        self._has_key = evaluation.context.lookup("userId") is not None
        self._drawn = find_drawn_flags(evaluation)
        self._draws_variants = any(evaluation.values[column] is None for column in snapshot.choosing)
        self._browser = browser
        self._written = prepared.written

    def flag(self, position: int, fragments: FlagFragments) -> bytes:
        """OFREP's evaluationSuccess of the flag at a position. Raises TargetingKeyMissing, and ValidationError for an
        unreadable payload.

        The parts that do not depend on the context are written once per possible decision.
        """
        evaluation = self._evaluation
        flag, outcome = evaluation.snapshot.flags[position], evaluation.outcomes[position]
        result, on, decided, pick, place, strategies, unmet = outcome
        if not self._has_key and lacks_targeting_key(evaluation, flag, FlagOutcome(*outcome)):
            raise TargetingKeyMissing(
                f"The rollout of flag {flag.name} is by userId: the context needs a targetingKey."
            )
        outside = find_outside(evaluation, flag, strategies) if decided == NONE and not on else ()
        chosen = NONE if decided == NONE else strategies[decided][PICK]
        way = self._browser, flag.name, result, on, decided, chosen, pick, place > 0, bool(outside)
        written = None if unmet else self._written.get(way)
        if written is None:
            written = self._write(position, fragments, FlagOutcome(*outcome), outside)
            if not unmet and len(written[0]) <= MAX_KEPT:
                self._written[way] = written
        before, after = written
        why = b"" if self._browser else orjson.dumps(self._reasons.flag(flag, outcome))
        drawn = b',"random":true' if self._is_random(position, flag, outcome) else b""
        bucket = find_bucket(evaluation, flag, outcome, outside)
        hashed = b"" if bucket is None else b',"bucket":%d' % bucket
        return b"".join((before, why, after, drawn, hashed, b"}}"))

    def _write(
        self, position: int, fragments: FlagFragments, outcome: FlagOutcome, outside: Collection[int]
    ) -> tuple[bytes, bytes]:
        """Writes the text before and after the reason, which is constant for browsers.

        `variant` is always present, because providers read it unconditionally: by default it is "enabled" or
        "disabled".
        """
        snapshot = self._evaluation.snapshot
        flag, choice = snapshot.flags[position], find_choice(snapshot.flags[position], outcome)
        reason = find_reason(flag, outcome, choice, outside, is_static=snapshot.static[position])
        before = {
            "key": flag.name,
            "reason": reason,
            "variant": choice.name if choice else "enabled" if outcome.on else "disabled",
            "value": read_value(outcome, fragments),
        }
        after = {"project": flag.project, "stale": fragments.stale}
        why = orjson.dumps(self._describe(flag, outcome, reason)) if self._browser else b""
        return (
            orjson.dumps(before)[:-1] + b',"metadata":{"why":' + why,
            b"," + orjson.dumps(after)[1:-1],
        )

    def _describe(self, flag: CompiledFlag, outcome: FlagOutcome, reason: Reason) -> str:
        """The reason, without definitions."""
        if reason is DISABLED:
            return self._reasons.flag(flag, outcome)
        return WITHOUT_DEFINITIONS[reason, outcome.on]

    def _is_random(self, position: int, flag: CompiledFlag, outcome: PlainOutcome) -> bool:
        is_drawn = position in self._drawn
        return (is_drawn or self._draws_variants) and is_random(
            self._evaluation, flag, FlagOutcome(*outcome), drawn=is_drawn
        )


def render_flag(prepared: Prepared, name: str, context: Context, random: Random, *, browser: bool) -> bytes:
    """One flag; evaluates only it and its parents. Raises FlagNotFound, and the errors of ``Resolver.flag``."""
    snapshot = prepared.snapshot
    position = snapshot.positions.get(name)
    if position is None:
        environment = snapshot.environment
        raise FlagNotFound(f"Active flag {name} not found in {environment} with this token's projects.")
    evaluation = Evaluation(prepared.only(name), context, random)
    EVALUATED.inc()
    resolver = Resolver(evaluation, prepared, browser=browser)
    return resolver.flag(evaluation.snapshot.positions[name], prepared.flags[position])


def render_flags(
    prepared: Prepared, context: Context, random: Random, *, browser: bool, **more: Any
) -> bytes:
    """``{"flags": [...]}`` and ``more``: every flag by name, each an evaluationSuccess or an evaluationFailure."""
    evaluation = Evaluation(prepared.snapshot, context, random)
    EVALUATED.inc(len(prepared.flags))
    resolver = Resolver(evaluation, prepared, browser=browser)
    flags = []
    for position, fragments in enumerate(prepared.flags):
        try:
            flags.append(resolver.flag(position, fragments))
        except ValidationError as error:
            failure = describe_failure(error, prepared.snapshot.flags[position].name)
            flags.append(orjson.dumps(failure))
    rest = b"," + orjson.dumps(more)[1:] if more else b"}"
    return b'{"flags":[' + b",".join(flags) + b"]" + rest
