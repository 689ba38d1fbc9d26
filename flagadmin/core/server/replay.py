"""Replays what Django answered, for requests that it would answer in the same way.

What decides an answer, beside the state of the database, is in `Inputs`: middleware and views read nothing else of
a GET request without a body. A request with anything unusual has no inputs, and Django answers it.
"""

import hashlib
from typing import Any, NamedTuple

from flagadmin.core.http.middleware import request_id_for
from flagadmin.core.server.loop_routes import Headers, Ready

# Host: ALLOWED_HOSTS. X-Forwarded-Proto: the redirect to HTTPS. Content-Type: the encoding of the query string.
_SHAPING = (
    "host",
    "authorization",
    "accept-encoding",
    "unleash-client-spec",
    "x-forwarded-proto",
    "content-type",
)
_READ = frozenset({*_SHAPING, "if-none-match", "x-request-id", "cookie"})
REQUEST_ID = "X-Request-Id"


class Inputs(NamedTuple):
    """``key`` is a hash of all that shapes the answer, except ``if_none_match``."""

    key: bytes
    if_none_match: str | None
    request_id: str


def read_inputs(scope: Any) -> Inputs | None:
    """The inputs of an RSGI request, or None if only Django can say what they mean."""
    found: dict[str, str] = {}
    for name, value in scope.headers.items():
        if name in _READ:
            # As `environ_of` joins them.
            found[name] = f"{found[name]},{value}" if name in found else value
    if "cookie" in found or "host" not in found:
        return None
    shaping = [scope.scheme, scope.query_string, *[found.get(name, "") for name in _SHAPING]]
    # A hash, because secrets should not lie about in memory and a header may be long. No header contains NUL.
    key = hashlib.sha256("\0".join(shaping).encode()).digest()
    return Inputs(key, found.get("if-none-match"), found.get("x-request-id", ""))


def replayable_headers(sent: Ready) -> Headers | None:
    """The headers of an answer without those of its request. None if they are for this client only."""
    if any(name.lower() == "set-cookie" for name, _ in sent.headers):
        return None
    return [(name, value) for name, value in sent.headers if name != REQUEST_ID]


def replay(status: int, headers: Headers, body: bytes, inputs: Inputs) -> Ready:
    identifier = request_id_for(inputs.request_id)
    return Ready(status, [*headers, (REQUEST_ID, identifier)], body, identifier)
