"""Requests and responses of a relay, and its answers to SDKs."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson

from flagadmin.core.errors import AppError, AuthenticationRequired, ValidationError
from flagadmin.core.http.json_bodies import Bounds, inflate, read_json
from flagadmin.core.http.request_headers import accepts_gzip, choose_address, get_peer, is_listed, read_secret
from flagadmin.core.server.loop_routes import Ready
from relay.flags import Body, Flags
from sdk.evaluation.prepared import Answer, Prepared
from sdk.headers import HEADER
from sdk.ofrep import answers as ofrep

JSON = ("content-type", "application/json")
MAX_BODY = 4_000_000  # bytes
MAX_FIELDS = 1_000  # of a query
BOUNDS = Bounds()
OF_REPORTS = Bounds(values=1_000_000, containers=100_000)
"""No request is answered while a body is parsed."""


class Request:
    """A request with its whole body."""

    is_behind_proxy = False
    """Whether a trusted proxy appends the client's address to X-Forwarded-For."""

    def __init__(self, scope: Any, body: bytes) -> None:
        # The server sends no body in reply to HEAD.
        self.method: str = "GET" if scope.method == "HEAD" else scope.method
        self.path = read_path(scope)
        self.query: str = scope.query_string
        self._peer = get_peer(scope)
        self._body = body
        self.headers: dict[str, str] = {}
        for name, value in scope.headers.items():
            self.headers[name] = f"{self.headers[name]},{value}" if name in self.headers else value

    @property
    def secret(self) -> str:
        """The token. Raises AuthenticationRequired without one."""
        secret = (
            read_secret(self.headers.get("authorization", "")) or self.headers.get("x-api-key", "").strip()
        )
        if not secret:
            raise AuthenticationRequired("Send an API token in the Authorization header.")
        return secret

    @property
    def address(self) -> str:
        forwarded_for = self.headers.get("x-forwarded-for", "")
        return choose_address(self._peer, forwarded_for, is_behind_proxy=self.is_behind_proxy)

    def parameters(self) -> dict[str, str]:
        try:
            return dict(parse_qsl(self.query, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError:
            raise ValidationError(f"The query must have at most {MAX_FIELDS:,} parameters.") from None

    def json(self, bounds: Bounds = BOUNDS) -> Any:
        """Parses the body. An empty one counts as an empty object. Raises ValidationError."""
        if not self._body:
            return {}
        encoding = self.headers.get("content-encoding", "identity").lower()
        content = self._body if encoding == "identity" else inflate(self._body, encoding, MAX_BODY)
        return read_json(content, bounds)

    def knows(self, etag: str) -> bool:
        return is_listed(self.headers.get("if-none-match", ""), etag)


def respond_json(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Ready:
    return Ready(status, [JSON, *(headers or {}).items()], orjson.dumps(document))


def read_path(scope: Any) -> str:
    """The path without superfluous slashes: SDKs whose base URL ends with one send two."""
    path: str = scope.path
    return re.sub("/+", "/", path.rstrip("/")) or "/"


def respond_error(path: str, error: AppError) -> Ready:
    """Responds in the error format of the API at this path."""
    identifier = os.urandom(16).hex()
    is_ofrep = path.startswith(ofrep.PREFIX)
    body = ofrep.make_error_body(path, error, identifier) if is_ofrep else error.record(identifier)
    return respond_json(body, error.status, error.headers | {"cache-control": "no-store"})


MIN_COMPRESSED = 1_000  # bytes


async def prepare(flags: Flags) -> Prepared:
    return flags.prepare() if flags.is_prepared else await asyncio.to_thread(flags.prepare)


async def respond_body(request: Request, body: Body) -> Ready:
    headers = [
        ("etag", body.etag),
        ("cache-control", "no-cache"),
        ("vary", f"Authorization, Accept-Encoding, {HEADER}"),
    ]
    if request.knows(body.etag):
        return Ready(304, headers)
    if accepts_gzip(request.headers.get("accept-encoding", "")) and len(body.body) >= MIN_COMPRESSED:
        content = body.get_bytes(gzipped=True) or await asyncio.to_thread(lambda: body.gzipped)
        return Ready(200, [JSON, ("content-encoding", "gzip"), *headers], content)
    return Ready(200, [JSON, *headers], body.body)


def respond_answer(answer: Answer | None) -> Ready:
    assert answer is not None
    headers = [("cache-control", "no-cache")]
    if answer.etag:
        headers.append(("etag", answer.etag))
    if answer.body is None:
        return Ready(304, headers)
    return Ready(200, [JSON, *headers], answer.body)
