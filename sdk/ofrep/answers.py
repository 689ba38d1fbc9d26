"""Answers OpenFeature's providers for a context: from memory if nothing has changed.

Reads an OFREP request (``{"context": {"targetingKey": "42", "country": "NO"}}``), with every part optional.

Errors have OFREP's form: ``{key?, errorCode, errorDetails}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, count, pairwise
from random import random, randrange
from typing import Any, ClassVar
from urllib.parse import urlencode

import orjson

from flagadmin.core.errors import AppError, NotFound, Problem, ValidationError
from flagadmin.core.http.request_headers import is_listed
from playground.context_body import describe_kind, read_context
from playground.engine import sentences
from playground.engine.chance import find_drawn_flags
from playground.engine.context import TOP_LEVEL, Context
from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.hashing import Random
from playground.engine.outcomes import RESULT, STRATEGIES, FlagOutcome, PlainOutcome, StrategyOutcome
from playground.engine.reasons import Reasons
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import Rollout
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
TEMPLATE = 200  # bytes of a template, besides its text and ENTRY
SIGNED = 90  # bytes of each part of a signature. Measured
MARK = randrange(10**11, 10**12)  # a number that occurs nowhere else in an answer
DIGITS = 6  # of the number of a strategy behind it

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


Template = tuple[bytes, list[int]]
"""The answer of a flag, and the places of the values that it is formatted with, among those of a resolver: the buckets
of all strategies and phrases.
"""

_Signature = tuple[object, ...]
"""The number of the `Templates`, the position of a flag, and everything in an evaluation that the words of its answer
depend on.
"""

written: Remembered[_Signature, Template] = Remembered()
"""Bounded for the whole process: a snapshot may have many signatures, and a process many snapshots."""
_numbers = count()


class Templates:
    """How the templates of a snapshot's flags are written and found."""

    def __init__(self, snapshot: Snapshot, fragments: Sequence[FlagFragments]) -> None:
        self.fragments = fragments
        self.places = list(pairwise([0, *snapshot.batch.ends]))
        """The first strategy of each flag, and that of the next."""
        used = enumerate({*chain(*(each.segments for each in flag.strategies))} for flag in snapshot.flags)
        self.segments = {position: sorted(segments) for position, segments in used if segments}
        """By flag that has any."""
        flags = enumerate(snapshot.flags)
        self.depending = {position for position, flag in flags if flag.parents or flag.variants is not None}
        """The flags whose answer depends on more than their strategies."""
        self.number = next(_numbers)
        self.phrases: list[tuple[bytes, str]] = []
        """b"v" and a field for its value, b"s" and a stickiness for what is hashed. Only grows; may have some twice."""

    def cut_at_marks(self, text: bytes) -> Template:
        first, *others = text.split(b"%d" % MARK)
        parts, slots = [first.replace(b"%", b"%%")], list[int]()
        for other in others:
            if other[:1].isdigit():  # a bucket, perhaps a negative one
                slots.append(int(other[:DIGITS]))
                parts[-1] = parts[-1].removesuffix(b"-")
                end, form = DIGITS, b"%d"
            else:
                end, form = other.index(b".") + 1, b"%b"
                phrase = other[:1], bytes.fromhex(other[1 : end - 1].decode()).decode()
                if phrase not in self.phrases:
                    self.phrases.append(phrase)
                slots.append(self.places[-1][1] + self.phrases.index(phrase))
            parts.append(form + other[end:].replace(b"%", b"%%"))
        return b"".join(parts), slots


class _Marks(dict[str, Any]):
    """Marks in place of phrases, where there is one."""

    def __init__(self, kind: str, phrases: Mapping[str, str | None]) -> None:
        super().__init__()
        self._kind, self._phrases = kind, phrases

    def __missing__(self, name: str) -> str | None:
        return None if self._phrases[name] is None else f"{MARK}{self._kind}{name.encode().hex()}."


class Resolver:
    """Resolves flags of one evaluation. `browser`: for a frontend token, which must not see definitions."""

    def __init__(
        self, prepared: Prepared, name: str | None, context: Context, random: Random, *, browser: bool
    ) -> None:
        """Evaluates the flag of this name with its parents, or all flags."""
        self.snapshot = snapshot = prepared.snapshot if name is None else prepared.only(name)
        self._evaluation = evaluation = Evaluation(snapshot, context, random)
        self._browser = browser
        if (templates := prepared.written.get((name, browser))) is None:
            positions = [prepared.snapshot.positions[flag.name] for flag in snapshot.flags] if name else None
            fragments = prepared.flags if positions is None else [prepared.flags[each] for each in positions]
            templates = prepared.written[name, browser] = Templates(snapshot, fragments)
        self._templates: Templates = templates
        self._reasons = Reasons(evaluation)
        self._has_key = evaluation.context.lookup("userId") is not None
        self._drawn = find_drawn_flags(evaluation)
        self._draws_variants = any(evaluation.values[column] is None for column in snapshot.choosing)
        self._signatures = self._sign()

    def _sign(self) -> list[_Signature | None]:
        """Of each flag; None if it has no template."""
        templates, result = self._templates, self._evaluation.result
        if self._draws_variants:
            return [None] * len(templates.places)
        number, strategies = templates.number, result.sign(self.snapshot.batch)
        signatures: list[_Signature | None] = [
            (number, position, *strategies[start:end])
            for position, (start, end) in enumerate(templates.places)
        ]
        for position, segments in templates.segments.items():
            bits = map(result.segment_bits.__getitem__, segments)
            signatures[position] = (*(signatures[position] or ()), *bits)
        for position in templates.depending | self._drawn:
            signatures[position] = None
        return signatures

    def flag(self, position: int) -> bytes:
        """OFREP's evaluationSuccess of the flag at a position. Raises TargetingKeyMissing, and ValidationError for an
        unreadable payload.
        """
        [known] = written.get_all([self._signatures[position]])
        return self._format(*(known or self._make(position)))

    def flags(self) -> bytes:
        """The same of all flags, with commas; an evaluationFailure in place of an error."""
        texts, slots = list[bytes](), list[int]()
        for position, known in enumerate(written.get_all(self._signatures)):
            try:
                text, places = known or self._make(position)
            except ValidationError as error:
                failure = describe_failure(error, self.snapshot.flags[position].name)
                text, places = orjson.dumps(failure).replace(b"%", b"%%"), []
            texts.append(text)
            slots += places
        return self._format(b",".join(texts), slots)

    def _format(self, text: bytes, slots: list[int]) -> bytes:
        of: dict[bytes, Mapping[str, str | None]] = {b"v": self._reasons.values, b"s": self._reasons.subjects}
        phrases = [orjson.dumps(of[kind][name])[1:-1] for kind, name in self._templates.phrases]
        values: list[Any] = [*self._evaluation.result.buckets, *phrases]
        return text % tuple(map(values.__getitem__, slots))

    def _make(self, position: int) -> Template:
        """Writes the answer with marks in place of everything that another context may change, and keeps it."""
        signature, outcome = self._signatures[position], self._evaluation.outcomes[position]
        if signature is None or outcome[RESULT] is None:  # the reason depends on values
            return self._write(position, outcome, self._reasons).replace(b"%", b"%%"), []
        strategies = zip(self.snapshot.flags[position].strategies, outcome[STRATEGIES], strict=True)
        marked: list[StrategyOutcome] = [
            (verdict, bits, _mark_bucket(bucket, strategy.rollout, number), pick, place)
            for number, (strategy, (verdict, bits, bucket, pick, place)) in enumerate(
                strategies, self._templates.places[position][0]
            )
        ]
        marks = _Marks("v", self._reasons.values), _Marks("s", self._reasons.subjects)
        text = self._write(
            position, FlagOutcome(*outcome)._replace(strategies=marked), Reasons(self._evaluation, *marks)
        )
        template = self._templates.cut_at_marks(text)
        written.put(signature, template, TEMPLATE + len(text) + SIGNED * len(signature))
        return template

    def _write(self, position: int, plain: PlainOutcome, reasons: Reasons) -> bytes:
        """`variant` is always present, because providers read it unconditionally: by default it is "enabled" or
        "disabled".
        """
        evaluation, fragments = self._evaluation, self._templates.fragments[position]
        flag, outcome = evaluation.snapshot.flags[position], FlagOutcome(*plain)
        if not self._has_key and lacks_targeting_key(evaluation, flag, outcome):
            raise TargetingKeyMissing(
                f"The rollout of flag {flag.name} is by userId: the context needs a targetingKey."
            )
        nobody = outcome.decided == NONE and not outcome.on
        outside = find_outside(evaluation, flag, outcome.strategies) if nobody else ()
        choice = find_choice(flag, outcome)
        reason = find_reason(flag, outcome, choice, outside, is_static=evaluation.snapshot.static[position])
        if self._browser and reason is not DISABLED:
            why = WITHOUT_DEFINITIONS[reason, outcome.on]
        else:
            why = reasons.flag(flag, outcome)
        metadata: dict[str, Any] = {"why": why, "project": flag.project, "stale": fragments.stale}
        if self._is_random(position, flag, outcome):
            metadata["random"] = True
        bucket = find_bucket(evaluation, flag, outcome, outside)
        if bucket is not None:
            metadata["bucket"] = bucket
        answer = {
            "key": flag.name,
            "reason": reason,
            "variant": choice.name if choice else "enabled" if outcome.on else "disabled",
            "value": read_value(outcome, fragments),
            "metadata": metadata,
        }
        return orjson.dumps(answer)

    def _is_random(self, position: int, flag: CompiledFlag, outcome: FlagOutcome) -> bool:
        is_drawn = position in self._drawn
        return (is_drawn or self._draws_variants) and is_random(
            self._evaluation, flag, outcome, drawn=is_drawn
        )


def _mark_bucket(bucket: int, rollout: Rollout | None, place: int) -> int:
    """A number on the same side of the threshold that stands for the bucket of the strategy at this place."""
    mark = MARK * 10**DIGITS + place if rollout and bucket else 0
    return mark if rollout and bucket > rollout.threshold else -mark


def render_flag(prepared: Prepared, name: str, context: Context, random: Random, *, browser: bool) -> bytes:
    """One flag; evaluates only it and its parents. Raises FlagNotFound, and the errors of ``Resolver.flag``."""
    if name not in prepared.snapshot.positions:
        environment = prepared.snapshot.environment
        raise FlagNotFound(f"Active flag {name} not found in {environment} with this token's projects.")
    EVALUATED.inc()
    resolver = Resolver(prepared, name, context, random, browser=browser)
    return resolver.flag(resolver.snapshot.positions[name])


def render_flags(
    prepared: Prepared, context: Context, random: Random, *, browser: bool, **more: Any
) -> bytes:
    """``{"flags": [...]}`` and ``more``: every flag by name, each an evaluationSuccess or an evaluationFailure."""
    resolver = Resolver(prepared, None, context, random, browser=browser)
    EVALUATED.inc(len(prepared.flags))
    rest = b"," + orjson.dumps(more)[1:] if more else b"}"
    return b'{"flags":[' + resolver.flags() + b"]" + rest


KEY = "targetingKey"


def read_body(body: Any) -> dict[str, Any]:
    """The fields of the context. Raises ValidationError (PARSE_ERROR) and InvalidContext."""
    if not isinstance(body, Mapping) and body is not None:
        raise ValidationError(f"The body must be an object, not {describe_kind(body)}.")
    fields = (body or {}).get("context")
    if fields is None:
        fields = {}
    if not isinstance(fields, dict):
        raise InvalidContext(f"The context must be an object, not {describe_kind(fields)}.")
    problems: list[Problem] = []
    context = read_context({"context": _select_context_fields(fields)}, problems)
    if problems:
        raise InvalidContext.of(problems)
    return context


def _select_context_fields(members: dict[str, Any]) -> dict[str, Any]:
    """The members that are context fields, with the targeting key as userId.

    OpenFeature allows objects and lists in a context for the application's own use; no condition can refer to them.
    """
    fields = {
        name: value
        for name, value in members.items()
        if name in TOP_LEVEL or not isinstance(value, dict | list)
        if name not in (KEY, "properties")
    }
    properties = members.get("properties")
    if isinstance(properties, dict):
        fields["properties"] = {n: v for n, v in properties.items() if not isinstance(v, dict | list)}
    key = members.get(KEY)
    if isinstance(key, dict | list):
        raise InvalidContext.at(f"context.{KEY}", f"must be a string, not {describe_kind(key)}")
    return fields if key is None or key == "" else fields | {"userId": key}


PREFIX = "/ofrep/"
_SINGLE = re.compile(r"/ofrep/v1/evaluate/flags/(.+)", re.DOTALL)


class InvalidContext(ValidationError):
    code: ClassVar[str] = "INVALID_CONTEXT"


class TargetingKeyMissing(ValidationError):
    code: ClassVar[str] = "TARGETING_KEY_MISSING"


class FlagNotFound(NotFound):
    code: ClassVar[str] = "FLAG_NOT_FOUND"


def get_code(error: AppError) -> str:
    """The OpenFeature error code; PARSE_ERROR for an unreadable body or payload."""
    code: str = getattr(error, "code", "PARSE_ERROR" if isinstance(error, ValidationError) else "GENERAL")
    return code


def describe_failure(error: AppError, key: str | None = None) -> dict[str, Any]:
    """OFREP's evaluationFailure; without ``key`` for all flags, or for a request without a flag."""
    problems = list(map(str, error.details))
    details = "; ".join(problems) if len(problems) > 1 else error.message
    named = {} if key is None else {"key": key}
    return {**named, "errorCode": get_code(error), "errorDetails": details}


def make_error_body(path: str, error: AppError, error_id: str) -> dict[str, Any]:
    """The body of a failed request; ``error_id`` finds an unexpected error in the server's log."""
    single = _SINGLE.fullmatch(path)
    body = describe_failure(error, single[1] if single else None)
    if error.status >= 500:
        body["errorDetails"] += f" (id {error_id})"
    return body
