"""Repeats Django's answers to polls in the event loop, while their token and its projects are unchanged.

A view marks a response with its origin if it depends on nothing else in the database. While the database cannot be
reached, the earlier state counts for a while (`flagadmin/core/db/outages.py`).
"""

import math
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from flagadmin.core.db.outages import make_cache_status, reach
from flagadmin.core.server.loop_routes import Ready
from flagadmin.core.server.ready_answers import Basis, ReadyAnswers
from sdk.base import TokenScope
from sdk.features.assembly import FeaturesAnswer
from sdk.headers import HEADER
from sdk.watcher.state import State
from sdk.watcher.watcher import Watcher, watcher


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a response. ``answer`` is None for a 304. ``valid_until`` is in seconds since 1970."""

    token: int
    scope: TokenScope
    answer: FeaturesAnswer | None = None
    valid_until: float = math.inf


def mark_origin(response: HttpResponse, origin: Origin) -> None:
    """Lets the event loop repeat this response. It must depend on nothing else in the database."""
    response.origin = origin  # type: ignore[attr-defined]


def known_state(watcher: Watcher) -> State | None:
    """The state if it is certain; during an outage of the database, the last state for a while."""
    state = watcher.state
    return watcher.latest if state is None and reach.is_lost and reach.get_age() is not None else state


class PollAnswers(ReadyAnswers):
    """The shortcut of a path that backend tokens poll."""

    max_answers = 4_000  # some kilobytes each, without the bodies, which are in the features cache

    def __init__(self, watcher: Watcher, reads: tuple[str, ...]) -> None:
        super().__init__(reads, caller="backend")
        self._watcher = watcher

    def state(self) -> State | None:
        return known_state(self._watcher)

    def answer(self, scope: Any, body: bytes = b"") -> Ready | None:
        ready = super().answer(scope, body)
        if ready and reach.is_lost and self._watcher.state is None and (age := reach.get_age()) is not None:
            ready.headers.append(("Cache-Status", make_cache_status(age)))
        return ready

    def find_basis(self, before: State, sent: Ready, response: Any) -> Basis | None:
        origin = getattr(response, "origin", None)
        if not isinstance(origin, Origin) or not self._watcher.use(origin.token):
            return None
        token_id = origin.token
        token, fingerprint = before.tokens.get(token_id), before.fingerprint(token_id)
        # Django may have read a newer state than this one; the answer then expires with the next read.
        if token is None or before.scope_of(token) != origin.scope:
            return None
        expires_at = token.expires_at.timestamp() if token.expires_at else math.inf
        valid_until = min(expires_at, origin.valid_until)

        def holds(state: State) -> bool:
            if state.fingerprint(token_id) != fingerprint or time.time() >= valid_until:
                return False
            self._watcher.use(token_id)
            return True

        return Basis(holds, _body(sent, origin.answer))


def _body(sent: Ready, answer: FeaturesAnswer | None) -> Callable[[], bytes | None]:
    """The body while the features cache holds it. A 304 has none."""
    if answer is None:
        return lambda: b""
    kept, gzipped = weakref.ref(answer), ("Content-Encoding", "gzip") in sent.headers

    def body() -> bytes | None:
        answer = kept()
        return answer.get_bytes(gzipped=gzipped) or None if answer is not None else None

    return body


features_answers = PollAnswers(watcher, ("Authorization", "Accept-Encoding", HEADER))
delta_answers = PollAnswers(watcher, ("Authorization", "Accept-Encoding", "If-None-Match"))
