"""Answers contexts in the event loop: with the headers that Django gave the same caller, while the token is unchanged.

What only Django can say it answers: the first request of a caller, whatever is wrong with a request, and what would
take the loop too long.
"""

import logging
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from django.conf import settings
from django.utils import timezone

from flagadmin.core.bounded_dict import BoundedDict
from flagadmin.core.db.outages import make_cache_status, reach
from flagadmin.core.errors import AppError
from flagadmin.core.http.etag_lists import is_listed
from flagadmin.core.http.middleware import choose_request_id
from flagadmin.core.http.request_headers import choose_address, get_peer
from flagadmin.core.installation.state import get_remembered_origins
from flagadmin.core.server.loop_routes import Headers, Learn, Ready
from playground.engine.context import Context
from playground.response.snapshot import ResponseSnapshot
from playground.snapshot_cache import LOOKUPS, Key, cache, make_key
from sdk.evaluation.context import make_context
from sdk.evaluation.prepared import Answer, Prepared, prepare
from sdk.evaluation.remembered import Remembered
from sdk.poll_shortcuts import Origin, known_state
from sdk.watcher.state import State, TokenState
from sdk.watcher.watcher import Watcher

T = TypeVar("T")

log = logging.getLogger("flagadmin.server")

MAX_CALLERS = 4_000
MAX_TEXT = 16_000  # characters or bytes of a context that is read in the loop
# Work that takes longer than SLOW seconds, TIMES times in succession, is left to Django for SLOW_FOR seconds. Fewer may
# be the fault of the machine, or of a thread that computes.
SLOW, TIMES, SLOW_FOR = 0.05, 4, 60.0
QUESTION = 300  # bytes of a question that is remembered, beside its text
TOUCH = 1.0  # seconds between two looks at the cache, which so learns what is in use

# Headers that shape Django's answer besides the context. Host: ALLOWED_HOSTS. X-Forwarded-Proto: the redirect to HTTPS.
_SHAPING = ("host", "x-forwarded-proto", "content-type", "authorization", "x-api-key", "origin")
_READ = frozenset(
    (*_SHAPING, "if-none-match", "x-forwarded-for", "x-request-id", "cookie", "content-encoding")
)
_OWN = frozenset(("etag", "content-length", "x-request-id", "cache-status"))  # of each answer

_lookups = LOOKUPS.labels("hit")


class Request(NamedTuple):
    """The basis of an evaluation. ``fields`` are those of the context as the client sent it, not yet checked."""

    path: str
    query: str
    body: bytes
    if_none_match: str
    address: str


@dataclass(slots=True)
class Caller:
    """The caller, who asks with a token, for a host, from an origin. ``headers`` are those of answers by status."""

    token_id: int
    token: TokenState
    environment: str
    origins: object
    headers: dict[int, tuple[Headers, bool]] = field(default_factory=dict)
    checked: int = 0
    """The version of the state in which the token is known to be the same."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Facts that an endpoint has found out about the token."""

    @property
    def is_browser(self) -> bool:
        return self.token.kind == "frontend"

    @property
    def scope(self) -> tuple[object, ...]:
        """The parts of the token that decide the flags."""
        return self.environment, None if self.token.all_projects else self.token.scopes


class _Place:
    """The place of a scope's snapshot in the cache."""

    def __init__(self, key: Key, revisions: Mapping[str, int]) -> None:
        self._key, self._revisions = key, revisions
        self._prepared: weakref.ref[Prepared] | None = None
        self._touched = float("-inf")
        self._slow_until = float("-inf")
        self._slow = 0  # times

    @property
    def is_slow(self) -> bool:
        return time.monotonic() < self._slow_until

    def timed(self, work: Callable[[], T]) -> T:
        begun = time.perf_counter()
        result = work()
        if time.perf_counter() - begun <= SLOW:
            self._slow = 0
        elif self._slow + 1 < TIMES:
            self._slow += 1
        else:
            self._slow, self._slow_until = 0, time.monotonic() + SLOW_FOR
        return result

    def get(self) -> Prepared | None:
        now = time.monotonic()
        prepared = self._prepared() if self._prepared is not None else None
        if prepared is None or now - self._touched > TOUCH:
            compiled: ResponseSnapshot | None = cache.get(self._key)
            if compiled is None:
                return None
            prepared = prepare(compiled, self._revisions)
            self._prepared, self._touched = weakref.ref(prepared), now
        return prepared


Evaluate = Callable[[Prepared, Caller, Request], Answer | None]
"""The answer, None if it is not ready in the loop. Raises AppError for what Django is to refuse."""

Recall = Callable[[str], bytes | None]
"""The remembered answer with an ETag, if answers have one."""

Question = tuple[str, str, int, str | bytes, str]
"""All that decides the ETag of an answer that does not depend on the time."""

_etags: Remembered[Question, str] = Remembered()


class ContextAnswers:
    """The shortcut of a path whose answers depend on a context."""

    caller = ""

    def __init__(
        self, watcher: Watcher, evaluate: Evaluate, route: str, recall: Recall | None = None
    ) -> None:
        self._watcher = watcher
        self._evaluate = evaluate
        self._recall = recall
        self._route = route
        self._callers: BoundedDict[bytes, Caller] = BoundedDict(MAX_CALLERS)
        """By the hash of what shapes their answers."""
        self._places: dict[tuple[object, ...], _Place] = {}
        self._state: State | None = None
        self._version = 0  # of the state

    def answer(self, scope: Any, body: bytes = b"") -> Ready | None:
        headers = _read_headers(scope)
        caller = self._find_caller(scope, headers)
        if caller is None or len(body) > MAX_TEXT or len(scope.query_string) > MAX_TEXT:
            return None
        place = self._find_place(caller)
        prepared = place.get() if place is not None else None
        if place is None or prepared is None or place.is_slow:
            return None
        address = choose_address(
            get_peer(scope), headers.get("x-forwarded-for", ""), is_behind_proxy=settings.BEHIND_PROXY
        )
        request = Request(scope.path, scope.query_string, body, headers.get("if-none-match", ""), address)
        answer = self._answer_again(prepared, caller, request)
        if answer is None:
            answer = place.timed(lambda: self._evaluated(prepared, caller, request))
        return answer and self._make_ready(caller, answer, headers.get("x-request-id", ""))

    def _answer_again(self, prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
        """The answer to a question that was asked before, as long as flags and token are what they were."""
        if self._recall is None or not prepared.is_timeless:
            return None
        etag = _etags.get(self._make_question(prepared, caller, request))
        if etag is None:
            return None
        if is_listed(request.if_none_match, etag):
            return Answer(etag, None)
        body = self._recall(etag)
        return None if body is None else Answer(etag, body)

    def _make_question(self, prepared: Prepared, caller: Caller, request: Request) -> Question:
        address = request.address if prepared.looks_at_address else ""
        return self._route, prepared.state, caller.token_id, request.query or request.body, address

    def _evaluated(self, prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
        try:
            answer = self._evaluate(prepared, caller, request)
        except AppError:  # Django says it in its words
            return None
        except Exception:
            log.exception("A context could not be evaluated in the event loop")
            return None
        if answer is not None and answer.is_lasting and self._recall is not None:
            text = request.query or request.body
            _etags.put(self._make_question(prepared, caller, request), answer.etag, QUESTION + len(text))
        return answer

    def _make_ready(self, caller: Caller, answer: Answer, request_id: str) -> Ready | None:
        status = 304 if answer.body is None else 200
        known = caller.headers.get(status)
        if known is None:
            return None
        headers, has_length = known
        body, identifier = answer.body or b"", choose_request_id(request_id)
        headers = [*headers, ("X-Request-Id", identifier)]
        if answer.etag:
            headers.append(("ETag", answer.etag))
        if has_length:
            headers.append(("Content-Length", str(len(body))))
        if reach.is_lost and self._watcher.state is None and (age := reach.get_age()) is not None:
            headers.append(("Cache-Status", make_cache_status(age)))
        self._watcher.use(caller.token_id)
        _lookups.inc()
        return Ready(status, headers, body, identifier, self._route, caller.token.kind)

    def _find_caller(self, scope: Any, headers: Mapping[str, str]) -> Caller | None:
        key = _identify(scope, headers)
        caller = self._callers.get(key) if key else None
        if caller is None or caller.origins != get_remembered_origins():
            return None
        expires_at = caller.token.expires_at
        return caller if expires_at is None or time.time() < expires_at.timestamp() else None

    def _find_place(self, caller: Caller) -> _Place | None:
        """None if it is not certain that the token is what it was."""
        state = known_state(self._watcher)
        if state is None:
            return None
        if state is not self._state:
            self._state, self._places = state, {}
            self._version += 1
        if caller.checked != self._version:
            if state.tokens.get(caller.token_id) != caller.token:
                return None
            caller.checked = self._version
        place = self._places.get(caller.scope)
        if place is None:
            revisions = state.scope_of(caller.token).revisions
            place = self._places[caller.scope] = _Place(make_key(revisions, caller.environment), revisions)
        return place

    def learn(self, scope: Any, body: bytes = b"") -> Learn | None:
        state, origins = known_state(self._watcher), get_remembered_origins()
        key = _identify(scope, _read_headers(scope))
        if state is None or not key:
            return None

        def learn(sent: Ready, response: Any) -> None:
            origin = getattr(response, "origin", None)
            if isinstance(origin, Origin) and sent.status in (200, 304) and self._watcher.use(origin.token):
                self._keep(key, state, origin, origins, sent)

        return learn

    def _keep(self, key: bytes, state: State, origin: Origin, origins: object, sent: Ready) -> None:
        token = state.tokens.get(origin.token)
        if token is None or state.scope_of(token).projects != origin.scope.projects:
            return
        headers = [(name, value) for name, value in sent.headers if name.lower() not in _OWN]
        names = {name.lower() for name, _ in sent.headers}
        if "set-cookie" in names or origins is None:
            return
        caller = self._callers.get(key)
        if caller is None or (caller.token, caller.origins) != (token, origins):
            caller = Caller(origin.token, token, origin.scope.environment, origins)
        caller.headers[sent.status] = headers, "content-length" in names
        self._callers[key] = caller


def _read_headers(scope: Any) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in scope.headers.items():
        if name in _READ:
            # As `make_environ` joins them.
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _identify(scope: Any, headers: Mapping[str, str]) -> bytes:
    """Hashes what shapes the answer to an RSGI request besides the context. Empty if only Django can interpret it."""
    if "cookie" in headers or "host" not in headers or "content-encoding" in headers:
        return b""
    if scope.method == "GET" and "charset" in headers.get("content-type", "").lower():
        return b""  # of the query
    if "%00" in scope.query_string or (scope.method == "POST" and scope.query_string):
        return b""
    shaping = [scope.scheme, scope.method, *[headers.get(name, "\n") for name in _SHAPING]]
    # A hash, because secrets should not lie about in memory and a header may be long. No header contains NUL.
    return sha256("\0".join(shaping).encode()).digest()


def read_parameters(request: Request) -> dict[str, str]:
    """The parameters of the query, the last of each name, as Django reads them. Raises ValueError for too many."""
    return dict(
        parse_qsl(
            request.query, keep_blank_values=True, max_num_fields=settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        )
    )


def make_request_context(fields: Mapping[str, Any], caller: Caller, request: Request) -> Context:
    return make_context(fields, environment=caller.environment, address=request.address, now=timezone.now())
