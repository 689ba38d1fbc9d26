"""Answers polls of /api/client/features in the event loop, as Django answered before, while nothing has changed since.

Django's response says which token and state it was made from (`made_from`). It is replayed for requests with the
same inputs while the watcher's state says that the token and the revisions of its projects are the same.

While the database cannot be reached, the state of before counts for a while (`flagadmin/core/db/outages.py`).

An `If-None-Match` that is neither the current ETag nor an older one is Django's: another worker may have answered
from a newer state, and no client gets an older one after that. Of /api/client/delta, only 304 is replayed: its other
answers are for those who have one older version.
"""

import math
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from flagadmin.core.db.outages import cache_status_of, reach
from flagadmin.core.server.loop_routes import Headers, Learn, Ready
from flagadmin.core.server.replay import Inputs, read_inputs, replay, replayable_headers
from sdk.features.answer import FeaturesAnswer
from sdk.features.cache import is_older
from sdk.token_scope import TokenScope
from sdk.watcher.state import State
from sdk.watcher.watcher import Watcher, watcher

MAX_ANSWERS = 2_000  # some kilobytes each, without the bodies, which the features cache holds


@dataclass(frozen=True, slots=True)
class MadeFrom:
    """What decided a response. ``answer`` is None for a 304. ``valid_until`` is in seconds since 1970."""

    token: int
    scope: TokenScope
    etag: str
    answer: FeaturesAnswer | None
    valid_until: float = math.inf


def made_from(response: HttpResponse, origin: MadeFrom) -> HttpResponse:
    """Marks a response that depends on nothing else in the database."""
    response.made_from = origin  # type: ignore[attr-defined]
    return response


@dataclass(slots=True)
class _Known:
    """What Django answered to the same inputs: with 304, with 200, or both.

    The body belongs to the features cache: without it there, Django answers.
    """

    token: int
    expires_at: float  # seconds since 1970
    fingerprint: bytes  # of the token and of all that it can read
    etag: str
    not_modified: Headers | None = None
    full: Headers | None = None
    body: "weakref.ref[FeaturesAnswer] | None" = None
    gzipped: bool = False

    def holds(self, state: State) -> bool:
        return state.fingerprint(self.token) == self.fingerprint and time.time() < self.expires_at

    def ready(self, inputs: Inputs) -> Ready | None:
        wanted = inputs.if_none_match
        if wanted is not None and wanted.removeprefix("W/") == self.etag:
            return replay(304, self.not_modified, b"", inputs) if self.not_modified is not None else None
        if self.full is None or self.body is None or not (wanted is None or is_older(wanted, self.etag)):
            return None
        answer = self.body()
        body = answer.made(gzipped=self.gzipped) if answer is not None else b""
        return replay(200, self.full, body, inputs) if body else None

    def add(self, sent: Ready, headers: Headers, answer: FeaturesAnswer | None) -> None:
        if sent.status == 304:
            self.not_modified = headers
        elif sent.status == 200 and answer is not None:
            self.full, self.body = headers, weakref.ref(answer)
            self.gzipped = ("Content-Encoding", "gzip") in headers


class PollShortcut:
    caller = "backend"

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._known: OrderedDict[bytes, _Known] = OrderedDict()  # by the key of the inputs

    def answer(self, scope: Any) -> Ready | None:
        state, age = self._watcher.state, None
        if state is None and reach.is_lost and (age := reach.age()) is not None:
            state = self._watcher.latest
        inputs = read_inputs(scope)
        if state is None or inputs is None or (known := self._known.get(inputs.key)) is None:
            return None
        if not known.holds(state):
            return None
        self._watcher.use(known.token)
        self._known.move_to_end(inputs.key)
        ready = known.ready(inputs)
        if ready is not None and age is not None:
            ready.headers.append(("Cache-Status", cache_status_of(age)))
        return ready

    def learn(self, scope: Any) -> Learn | None:
        state = self._watcher.state  # of before Django begins to read
        inputs = read_inputs(scope)
        if state is None or inputs is None:
            return None

        def learn(sent: Ready, response: Any) -> None:
            origin = getattr(response, "made_from", None)
            if not isinstance(origin, MadeFrom) or not self._watcher.use(origin.token):
                return
            token, fingerprint = state.tokens.get(origin.token), state.fingerprint(origin.token)
            headers = replayable_headers(sent)
            if token is None or fingerprint is None or headers is None:
                return
            # Django may have read a newer state than this one, which then holds no longer with the next read.
            if state.scope_of(token) == origin.scope:
                expires_at = token.expires_at.timestamp() if token.expires_at else math.inf
                until = min(expires_at, origin.valid_until)
                known = _Known(origin.token, until, fingerprint, origin.etag)
                self._keep(inputs.key, known).add(sent, headers, origin.answer)

        return learn

    def _keep(self, key: bytes, new: _Known) -> _Known:
        """The known answers of the same state, or else ``new``."""
        known = self._known.pop(key, None)
        if known is None or (known.fingerprint, known.etag) != (new.fingerprint, new.etag):
            known = new
        known.expires_at = new.expires_at
        self._known[key] = known
        while len(self._known) > MAX_ANSWERS:
            self._known.popitem(last=False)
        return known


features_shortcut, delta_shortcut = PollShortcut(watcher), PollShortcut(watcher)
