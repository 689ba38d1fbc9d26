"""Repeats Django's answer to an equal request in the event loop, for as long as that answer holds.

An endpoint declares the request headers that its view reads, as in `Vary`. `_ALWAYS` has the headers that middleware
and settings read. Requests that agree in all of these get the same answer while its basis holds.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from flagadmin.core.caches import BoundedDict
from flagadmin.core.http.middleware import choose_request_id
from flagadmin.core.http.request_headers import select_headers
from flagadmin.core.server.loop_routes import Headers, Learn, Ready, add_shortcut

# Host: ALLOWED_HOSTS. X-Forwarded-Proto: the redirect to HTTPS. Content-Type: the encoding of the query string.
_ALWAYS = ("host", "x-forwarded-proto", "content-type", "if-none-match")
_REQUEST_ID = "X-Request-Id"


class Basis(NamedTuple):
    """The basis of an answer. ``body`` returns None if the body is gone: then Django answers."""

    holds: Callable[[Any], bool]
    body: Callable[[], bytes | None]


class _Answer(NamedTuple):
    status: int
    headers: Headers
    basis: Basis


class ReadyAnswers:
    """The shortcut of a path whose answers depend on the request alone."""

    max_answers = 100  # clients use a few hosts

    def __init__(self, reads: tuple[str, ...] = (), caller: str = "") -> None:
        """``reads`` are the request headers that the view reads, besides If-None-Match."""
        self.caller = caller
        self.reads = reads
        self._shaping = tuple(dict.fromkeys((*_ALWAYS, *(name.lower() for name in reads))))
        self._read = frozenset((*self._shaping, "cookie", _REQUEST_ID.lower()))
        self._answers: BoundedDict[bytes, _Answer] = BoundedDict(self.max_answers)
        """Keyed by the hash of the request."""

    @property
    def vary(self) -> str:
        return ", ".join(self.reads)

    def state(self) -> Any:
        """The state that decides answers besides the request; None if it is uncertain."""
        return ()

    def find_basis(self, before: Any, sent: Ready, response: Any) -> Basis | None:
        """The basis of Django's answer; None if it depends on more than the known state. ``before`` is the state before
        it.
        """
        return Basis(lambda state: True, lambda: sent.body) if sent.status == 200 else None

    def answer(self, scope: Any, body: bytes = b"") -> Ready | None:
        key, request_id = self._identify(scope)
        answer = self._answers.get(key) if key else None
        state = self.state() if answer else None
        if answer is None or state is None or not answer.basis.holds(state):
            return None
        ready_body = answer.basis.body()
        if ready_body is None:
            return None
        self._answers.move_to_end(key)
        identifier = choose_request_id(request_id)
        return Ready(answer.status, [*answer.headers, (_REQUEST_ID, identifier)], ready_body, identifier)

    def learn(self, scope: Any, body: bytes = b"") -> Learn | None:
        state = self.state()
        key, _ = self._identify(scope)
        if state is None or not key:
            return None

        def learn(sent: Ready, response: Any) -> None:
            headers = [(name, value) for name, value in sent.headers if name != _REQUEST_ID]
            if any(name.lower() == "set-cookie" for name, _ in headers):  # meant for this client only
                return
            if basis := self.find_basis(state, sent, response):
                self._answers[key] = _Answer(sent.status, headers, basis)

        return learn

    def _identify(self, scope: Any) -> tuple[bytes, str]:
        """A hash of everything in an RSGI request that affects its answer, and its X-Request-Id.

        The hash is empty if only Django can interpret the request.
        """
        headers = select_headers(scope, self._read)
        request_id = headers.get("x-request-id", "")
        if "cookie" in headers or "host" not in headers:
            return b"", request_id
        shaping = [scope.scheme, scope.query_string, *[headers.get(name, "\n") for name in self._shaping]]
        # A hash, because secrets should not stay in memory and a header may be long. No header contains NUL.
        return hashlib.sha256("\0".join(shaping).encode()).digest(), request_id


def add_health() -> None:
    for path in ("/healthz", "/health"):
        add_shortcut(path, ReadyAnswers())
