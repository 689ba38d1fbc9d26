"""Answers frontend SDKs: reads their context, and finds the result, from memory if nothing has changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping
from random import random
from typing import Any

from flagadmin.core.errors import NotFound, Problem, ValidationError
from flagadmin.core.http.request_headers import is_listed
from playground.context_body import read_context
from playground.engine.active import Found
from playground.engine.context import TOP_LEVEL, Context
from playground.engine.evaluator import Evaluation
from playground.evaluation_metrics import EVALUATIONS
from playground.response.frontend import render_toggle, render_toggles
from sdk.evaluation.prepared import LIMIT, Answer, Chance, Prepared, Remembered

POINTER = 8  # bytes

remembered: Remembered[str, list[bytes]] = Remembered()
_found: Remembered[Hashable, Found[bytes]] = Remembered(LIMIT // 2)
"""What a context got last, so that only the flags that have changed since are evaluated."""
_evaluated = EVALUATIONS.labels("frontend")
_PROPERTY = re.compile(r"properties\[(.+)\]")


def answer_toggles(
    prepared: Prepared, context: Context, known: str, *, may_evaluate: bool = True
) -> Answer | None:
    """The flags for the context, which has its currentTime. ``known`` is the client's If-None-Match, or empty.

    The ETag depends on the flags and the context, so that a client with the answer needs no evaluation. For a random
    result it depends on the answer, because the next one may differ. None if an evaluation is needed but not allowed.
    """
    etag = f'W/"{prepared.digest(context)}"'
    if is_listed(known, etag):
        return Answer(etag, None, is_lasting=True)
    toggles = remembered.get(etag)
    if toggles is None:
        if not may_evaluate:
            return None
        chance = Chance()
        place = prepared.place(context)
        found = prepared.toggles.find(context, chance, _found.get(place))
        toggles = found.active
        _evaluated.inc(len(prepared.flags))
        if chance.was_used:
            return _answer_drawn(render_toggles(toggles), known)
        remembered.put(etag, toggles, POINTER * len(toggles))
        _found.put(place, found, POINTER * len(found.pieces))
    return Answer(etag, render_toggles(toggles), is_lasting=True)


def answer_toggle(prepared: Prepared, name: str, context: Context) -> Answer:
    """One flag for a context, on or off. Raises NotFound."""
    position = prepared.snapshot.positions.get(name)
    if position is None:
        raise NotFound(f"Could not find feature flag {name}")
    _, outcome = Evaluation(prepared.only(name), context, random).pair(name)
    _evaluated.inc()
    return Answer("", render_toggle(name, prepared.flags[position], outcome))


def recall_toggles(etag: str) -> bytes | None:
    """The remembered answer with this ETag, if any."""
    toggles = remembered.get(etag)
    return None if toggles is None else render_toggles(toggles)


def _answer_drawn(body: bytes, known: str) -> Answer:
    etag = f'W/"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    return Answer(etag, None if is_listed(known, etag) else body)


def read_query_context(parameters: Mapping[str, str]) -> dict[str, Any]:
    """``userId=7&properties[country]=NO``. Any other parameter is a property too, and overrides ``properties[...]``."""
    context: dict[str, Any] = {}
    properties: dict[str, str] = {}
    plain: dict[str, str] = {}
    for name, value in parameters.items():
        if name in TOP_LEVEL:
            context[name] = value
        elif match := _PROPERTY.fullmatch(name):
            properties[match[1]] = value
        else:
            plain[name] = value
    return context | {"properties": properties | plain}


def read_body_context(body: Any) -> dict[str, Any]:
    """Reads the context from a body. A missing body or context counts as empty. Raises ValidationError."""
    if not isinstance(body, dict):
        raise ValidationError("The body must be an object.")
    problems: list[Problem] = []
    context = read_context({"context": body.get("context") or {}}, problems)
    if problems:
        raise ValidationError.of(problems)
    return context
