"""The paths whose contexts the event loop evaluates.

Django answers everything else: the first request of a caller, all errors, and work that would take the loop too long.
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

from flagadmin.core.caches import BoundedDict
from flagadmin.core.db.outages import make_cache_status, reach
from flagadmin.core.errors import AppError, ValidationError
from flagadmin.core.http.json_bodies import Bounds, read_json
from flagadmin.core.http.middleware import choose_request_id
from flagadmin.core.http.request_headers import choose_address, get_peer, is_listed, select_headers
from flagadmin.core.installation.state import get_remembered_origins
from flagadmin.core.server import loop_routes
from flagadmin.core.server.loop_routes import Headers, Learn, Ready
from playground.engine.context import Context
from playground.response.snapshot import ResponseSnapshot
from playground.snapshot_cache import LOOKUPS, Key, cache, make_key
from sdk.evaluation.prepared import (
    Answer,
    Prepared,
    Remembered,
    answer_toggles,
    make_context,
    prepare,
    read_body_context,
    read_query_context,
    recall_toggles,
)
from sdk.ofrep.answers import answer_flag, answer_flags, event_streams, read_body, remembered
from sdk.ofrep.change_events import ticket_for
from sdk.poll_shortcuts import Origin, known_state
from sdk.watcher.state import State, TokenState
from sdk.watcher.watcher import Watcher

T = TypeVar("T")

log = logging.getLogger("flagadmin.server")

MAX_CALLERS = 4_000
MAX_TEXT = 16_000  # characters or bytes of a context that is read in the loop
# Work that takes longer than SLOW seconds, TIMES times in succession, is left to Django for SLOW_FOR seconds. Fewer
# times may be due to the machine, or to a busy thread.
SLOW, TIMES, SLOW_FOR = 0.05, 4, 60.0
QUESTION = 300  # bytes of a remembered question, besides its text
TOUCH = 1.0  # seconds between two uses of the cache that mark the snapshots in use

# Headers that affect Django's answer besides the context. Host: ALLOWED_HOSTS. X-Forwarded-Proto: the redirect to
# HTTPS.
_SHAPING = ("host", "x-forwarded-proto", "content-type", "authorization", "x-api-key", "origin")
_READ = frozenset(
    (*_SHAPING, "if-none-match", "x-forwarded-for", "x-request-id", "cookie", "content-encoding")
)
_OWN = frozenset(("etag", "content-length", "x-request-id", "cache-status"))  # specific to each answer

_lookups = LOOKUPS.labels("hit")


class Request(NamedTuple):
    """The basis of an evaluation. ``fields`` are the context's as sent by the client, not yet validated."""

    path: str
    query: str
    body: bytes
    if_none_match: str
    address: str


@dataclass(slots=True)
class Caller:
    """A caller: a token, a host and an origin. ``headers`` are the answers' headers by status."""

    token_id: int
    token: TokenState
    environment: str
    origins: object
    headers: dict[int, tuple[Headers, bool]] = field(default_factory=dict)
    checked: int = 0
    """The version of the state at which the token was last verified."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Facts about the token that an endpoint has determined."""

    @property
    def is_browser(self) -> bool:
        return self.token.kind == "frontend"

    @property
    def scope(self) -> tuple[object, ...]:
        """The parts of the token that determine the flags."""
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
"""The answer; None if the loop does not have it. Raises AppError for requests that Django refuses."""

Recall = Callable[[str], bytes | None]
"""The remembered answer with an ETag, if answers have one."""

Question = tuple[str, str, int, str | bytes, str]
"""Everything that determines the ETag of an answer that does not depend on the time."""

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
        """By the hash of everything that affects their answers."""
        self._places: dict[tuple[object, ...], _Place] = {}
        self._state: State | None = None
        self._version = 0  # of the state

    def answer(self, scope: Any, body: bytes = b"") -> Ready | None:
        headers = select_headers(scope, _READ)
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
        """The answer to a repeated question, while flags and token are unchanged."""
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
        except AppError:  # Django reports it
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
        """None if it is uncertain whether the token is unchanged."""
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
        key = _identify(scope, select_headers(scope, _READ))
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


def _identify(scope: Any, headers: Mapping[str, str]) -> bytes:
    """Hashes the parts of an RSGI request, besides the context, that affect the answer. Empty if only
    Django can read it.
    """
    if "cookie" in headers or "host" not in headers or "content-encoding" in headers:
        return b""
    if scope.method == "GET" and "charset" in headers.get("content-type", "").lower():
        return b""  # applies to the query
    if "%00" in scope.query_string or (scope.method == "POST" and scope.query_string):
        return b""
    shaping = [scope.scheme, scope.method, *[headers.get(name, "\n") for name in _SHAPING]]
    # A hash, because secrets should not stay in memory and a header may be long. No header contains NUL.
    return sha256("\0".join(shaping).encode()).digest()


def read_parameters(request: Request) -> dict[str, str]:
    """The parameters of the query, the last of each name, as in Django. Raises ValueError for too many."""
    return dict(
        parse_qsl(
            request.query, keep_blank_values=True, max_num_fields=settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        )
    )


def make_request_context(fields: Mapping[str, Any], caller: Caller, request: Request) -> Context:
    return make_context(fields, environment=caller.environment, address=request.address, now=timezone.now())


FRONTEND, PROXY = "/api/frontend", "/api/proxy"
FLAGS = "/ofrep/v1/evaluate/flags"
# About 2 ms of CPU time: more are evaluated in a thread.
MAX_TOGGLES = 2_000
MAX_EXPLAINED = 200
BOUNDS = Bounds()


def add_shortcuts(watcher: Watcher) -> None:
    for path in (FRONTEND, PROXY):
        loop_routes.add_shortcut(path, ContextAnswers(watcher, evaluate_query, path[1:], recall_toggles))
        loop_routes.add_post_shortcut(path, ContextAnswers(watcher, evaluate_body, path[1:], recall_toggles))
    loop_routes.add_post_shortcut(FLAGS, ContextAnswers(watcher, evaluate_flags, FLAGS[1:], remembered.get))
    single = ContextAnswers(watcher, evaluate_flag, f"{FLAGS[1:]}/<text:key>")
    loop_routes.add_post_shortcut(f"{FLAGS}/", single)


def evaluate_query(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    try:
        parameters = read_parameters(request)
    except ValueError:
        raise ValidationError from None
    fields = read_body_context({"context": read_query_context(parameters)})
    context = make_request_context(fields, caller, request)
    return answer_toggles(
        prepared, context, request.if_none_match, may_evaluate=_may_evaluate_toggles(prepared)
    )


def evaluate_body(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    fields = read_body_context(read_json(request.body, BOUNDS))
    context = make_request_context(fields, caller, request)
    return answer_toggles(prepared, context, "", may_evaluate=_may_evaluate_toggles(prepared))


def _may_evaluate_toggles(prepared: Prepared) -> bool:
    return prepared.has_toggles and len(prepared.flags) <= MAX_TOGGLES


def evaluate_flags(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    context = make_request_context(read_body(read_json(request.body, BOUNDS)), caller, request)
    streams = caller.notes.get("streams")
    if streams is None:
        streams = event_streams(ticket_for(caller.token_id, caller.token.secret_hash))
        caller.notes["streams"] = streams
    return answer_flags(
        prepared,
        context,
        request.if_none_match,
        browser=caller.is_browser,
        streams=streams,
        may_evaluate=prepared.has_batch and len(prepared.flags) <= MAX_EXPLAINED,
    )


def evaluate_flag(prepared: Prepared, caller: Caller, request: Request) -> Answer | None:
    context = make_request_context(read_body(read_json(request.body, BOUNDS)), caller, request)
    name = request.path[len(FLAGS) + 1 :]
    return answer_flag(prepared, name, context, browser=caller.is_browser)
