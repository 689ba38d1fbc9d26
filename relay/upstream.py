"""Calls the upstream server. It may be slow, broken or hostile, so time and size are bounded."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from flagadmin import __version__

MAX_BYTES = 100_000_000
MAX_FACTOR = 6  # multiples of the timeout, for a whole answer
STEP = 65_536  # bytes

Headers = Sequence[tuple[str, str]]


class UpstreamFailed(Exception):
    """The upstream did not answer, or sent an invalid answer. The text gives the reason."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def read_json(self) -> Any:
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise UpstreamFailed("The upstream's answer is not JSON.") from None


class Upstream:
    """Thread-safe. Its methods wait for the network."""

    def __init__(
        self, address: str, *, timeout: float, name: str, headers: Headers = (), connections: int = 8
    ) -> None:
        """``headers`` are sent with every request, in addition to those of the protocol."""
        self.address = address
        self._timeout = timeout
        self._own = {
            **dict(headers),
            "User-Agent": f"flagadmin-relay/{__version__}",
            "Accept-Encoding": "gzip",
            "Unleash-AppName": name,
            "Unleash-Client-Spec": "5.2.0",
        }
        wait = urllib3.Timeout(connect=timeout, read=timeout)
        self._pool = urllib3.PoolManager(num_pools=2, maxsize=connections, timeout=wait, retries=False)

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str = "",
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Makes a request. Raises UpstreamFailed. Does not follow redirects, which count as answers."""
        sent = {**self._own, **(headers or {})}
        if token:
            sent["Authorization"] = token
        if body is not None:
            sent["Content-Type"] = "application/json"
        content = None if body is None else orjson.dumps(body)
        try:
            response = self._pool.request(
                method, self.address + path, body=content, headers=sent, redirect=False, preload_content=False
            )
            return Answer(response.status, response.headers, self._read(response))
        except (HTTPError, OSError, ValueError) as error:
            raise UpstreamFailed(f"The upstream cannot be asked: {type(error).__name__}.") from error

    def _read(self, response: Any) -> bytes:
        until = time.monotonic() + MAX_FACTOR * self._timeout
        parts, size = list[bytes](), 0
        try:
            for part in response.stream(STEP, decode_content=True):
                size += len(part)
                if size > MAX_BYTES or time.monotonic() > until:
                    response.close()
                    raise UpstreamFailed("The upstream's answer is too large, or comes too slowly.")
                parts.append(part)
        finally:
            response.release_conn()
        return b"".join(parts)
