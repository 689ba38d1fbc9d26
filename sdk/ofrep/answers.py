"""Answers OpenFeature's providers for a context: from memory if nothing has changed."""

from __future__ import annotations

from random import random
from typing import Any
from urllib.parse import urlencode

from flagadmin.core.http.etag_lists import is_listed
from playground.engine.context import Context
from sdk.evaluation.chance import Chance
from sdk.evaluation.prepared import Answer, Prepared
from sdk.evaluation.remembered import Remembered
from sdk.ofrep.documents import render_flag, render_flags

EVENTS, PARAMETER = "/ofrep/v1/events", "ticket"

remembered: Remembered[str, bytes] = Remembered()


def event_streams(ticket: str) -> list[dict[str, Any]]:
    """OFREP's ``eventStreams``. The stream is where the client found the flags, through whatever proxy."""
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

    The ETag is that of the flags, the context and the streams, so that nothing is evaluated for a client that has the
    answer. None if it would have to be evaluated, but may not.
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
