"""Calls the server with bounded time and size. No redirects; takes proxies and certificates from the environment.

Errors of these commands.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson
import requests
from requests.auth import AuthBase

MAX_SECONDS = 300
SILENCE = 120.0  # seconds without a byte: a large plan takes long
MAX_BYTES = 256_000_000
CHUNK = 65_536


class TokenAuth(AuthBase):
    """Prevents requests from using credentials of ``~/.netrc``."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self.token
        return request


class Server:
    """The server's API. The methods raise ClientError."""

    def __init__(self, address: str, token: str) -> None:
        self.address = _check_address(address)
        if not token or not token.isascii() or not token.isprintable():
            raise ClientError("Set FLAGADMIN_TOKEN to a token of the server, or give --token.")
        self._session = requests.Session()
        self._session.auth = TokenAuth(token)

    def get(self, path: str, query: Iterable[tuple[str, str]] = ()) -> Any:
        return self._ask("GET", f"{path}?{urlencode(list(query))}" if query else path)

    def post(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> Any:
        return self._ask("POST", path, body, headers)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def _ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        url = self.address + path
        sent = {"Accept": "application/json", "User-Agent": "flagadmin", **(headers or {})}
        data = None
        if body is not None:
            sent["Content-Type"] = "application/json"
            data = orjson.dumps(body)
        try:
            with self._session.request(
                method, url, data=data, headers=sent, timeout=SILENCE, stream=True, allow_redirects=False
            ) as response:
                return _read(url, response)
        except requests.RequestException as error:
            raise ClientError(f"{url.partition('?')[0]}: {find_cause(error)}") from None


def connect(address: str | None, token: str | None) -> Server:
    address = address or os.environ.get("FLAGADMIN_URL", "")
    if not address:
        raise ClientError("Set FLAGADMIN_URL to the server's address, or give --url.")
    return Server(address, token or os.environ.get("FLAGADMIN_TOKEN", ""))


def _check_address(address: str) -> str:
    if not is_server_address(address):
        raise ClientError(f"{address[:200]} is not an address like https://flags.example.com.")
    return address.rstrip("/")


def is_server_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_http and not (parts.username or parts.query or parts.fragment)


def _read(url: str, response: requests.Response) -> Any:
    until, content = time.monotonic() + MAX_SECONDS, bytearray()
    for chunk in response.iter_content(CHUNK):
        content += chunk
        if len(content) > MAX_BYTES or time.monotonic() > until:
            raise ClientError(f"{url}: its answer is too large or too slow.")
    if 300 <= response.status_code < 400:
        raise ClientError(f"{url}: answers with a redirect. Give the address that it leads to.")
    try:
        answer = orjson.loads(content) if content else None
    except ValueError:
        raise ClientError(
            f"{url}: status {response.status_code}, and no JSON: is it a flagadmin server?"
        ) from None
    if response.status_code >= 400:
        record = answer if isinstance(answer, dict) else {}
        details = [detail for detail in record.get("details") or () if isinstance(detail, dict)]
        raise Refused(response.status_code, str(record.get("message") or response.reason), details)
    return answer


def find_cause(error: BaseException) -> str:
    """The innermost reason, which requests wraps several times."""
    while inner := getattr(error, "reason", None) or next(
        (arg for arg in error.args if isinstance(arg, BaseException)), None
    ):
        if not isinstance(inner, BaseException):
            break
        error = inner
    return ((error.strerror if isinstance(error, OSError) else None) or str(error))[:300]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """``line`` is 0 if the problem concerns the whole file."""

    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        return f"{location}: {self.message}"


class ClientError(Exception):
    """The command cannot continue. The message gives the reason, and never contains the token."""


class BadFiles(ClientError):
    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Refused(ClientError):
    """The server answered with an error record."""

    def __init__(self, status: int, message: str, details: list[dict[str, str]]) -> None:
        super().__init__(message)
        self.status, self.details = status, details
