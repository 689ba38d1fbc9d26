"""Calls the source server of a move. It may be slow, broken or hostile: time, size and number are bounded."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import requests

from flagadmin.client.server import TokenAuth, find_cause, is_server_address
from flagadmin.core.errors import AppError, Conflict
from flagadmin.core.http.json_bodies import parse_json
from flagadmin.core.http.outside import Refused, bound, checked_session, read_bounded, read_retry_after
from groups.tokens import PERSONAL

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 4  # requests
ATTEMPTS = 5
WAIT = 0.5  # seconds before the second attempt if the server states none; doubled each time
SLOWER = 30  # factor on the wait if the server refuses too frequent requests: it counts by the minute
MAX_WAIT = 120  # maximum wait in seconds that the server may request
MAX_SECONDS = 120.0  # for one answer
SILENCE = 30.0  # seconds without a byte, and for all headers together
MAX_BYTES = 64_000_000  # of one answer, unpacked
TOO_MANY = 429
MAX_QUOTED = 500  # bytes of an answer with the reason for a refusal


class SourceError(Conflict):
    """The server cannot be read. The message contains the URL, and never the token."""


class UnexpectedStatus(SourceError):
    """The server answered with an unexpected status."""

    def __init__(self, message: str, answered: int) -> None:
        super().__init__(message)
        self.answered = answered
        """The status of the answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an answer. ``only_allowed``: checks addresses like integrations do, and uses no proxies."""

    attempts: int = ATTEMPTS
    seconds: float = MAX_SECONDS
    only_allowed: bool = False


FOR_PAGES = Limits(only_allowed=True)
"""For addresses given by a user in a browser."""
FOR_REQUESTS = Limits(attempts=1, seconds=30.0, only_allowed=True)
"""For calls while a user waits for the answer."""


class Source:
    """A server with Unleash's API. Proxies and certificates come from the environment, redirects are refused.

    Its methods raise SourceError. Thread-safe.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        limits: "Limits | None" = None,
        tell: Callable[[str], None] = lambda doing: None,
    ) -> None:
        """``tell`` is called with each step that begins, from several threads."""
        self.address = check_address(address)
        self._limits = limits or Limits()
        if not token or not token.isascii() or not token.isprintable():
            raise SourceError("Give a token of that server, in ASCII.")
        self._token = token
        self._tell = tell
        self.answers = 0
        """The number of answers so far, for progress."""
        self.doing = ""
        """The current step, such as ``Reading project web``."""
        self._local = threading.local()

    @property
    def has_personal_token(self) -> bool:
        return self._token.startswith(PERSONAL)

    def begin(self, doing: str) -> None:
        self.doing = doing
        self._tell(doing)

    def get(self, path: str, *, token: str = "", headers: Mapping[str, str] | None = None) -> Any:
        """The JSON at a path."""
        return self._ask("GET", path, token=token, headers=headers)

    def find(self, path: str) -> Any:
        """The JSON at a path; None if the server has no such path, or not for this token."""
        return self._ask("GET", path, absent=(403, 404))

    def post(self, path: str, body: Any) -> Any:
        return self._ask("POST", path, body=body)

    def send(self, method: str, path: str, body: Any) -> Any:
        """Writes there. Returns the answer's JSON, None if it has none. 409 is not an error: the object
        exists already.
        """
        return self._ask(method, path, body=body, absent=(409,), writes=True)

    def for_each(self, ask: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Calls ``ask`` for each item, a few at a time. The first error ends it."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            waiting = [threads.submit(ask, item) for item in items]
            try:
                return [each.result() for each in waiting]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        token: str = "",
        headers: Mapping[str, str] | None = None,
        absent: tuple[int, ...] = (),
        writes: bool = False,
    ) -> Any:
        url = self.address + path
        attempts = self._limits.attempts
        for attempt in range(1, attempts + 1):
            pause = WAIT * 2 ** (attempt - 1)
            try:
                answer = self._once(method, url, body, token or self._token, headers)
                self.answers += 1
                if answer.status_code != TOO_MANY and answer.status_code < 500:
                    return _read_answer(url, answer, absent, writes=writes)
                reason, wait = f"status {answer.status_code}", _read_wanted_wait(url, answer)
                pause = WAIT * SLOWER if answer.status_code == TOO_MANY else pause
            except requests.exceptions.SSLError as error:
                raise SourceError(f"{url}: its certificate is not accepted: {find_cause(error)}") from None
            except Refused as error:
                raise SourceError(str(error)) from None
            except (requests.ConnectionError, requests.Timeout) as error:
                reason, wait = find_cause(error), None
            except requests.RequestException as error:
                raise SourceError(f"{url}: {find_cause(error)}") from None
            if attempt < attempts:
                time.sleep(pause if wait is None else wait)
        times = f", {attempts} times in a row" if attempts > 1 else ""
        raise SourceError(f"{url}: {reason}{times}.")

    def _once(
        self, method: str, url: str, body: Any, token: str, headers: Mapping[str, str] | None
    ) -> requests.Response:
        if not hasattr(self._local, "session"):
            self._local.session = (
                checked_session() if self._limits.only_allowed else bound(requests.Session())
            )
        until = time.monotonic() + self._limits.seconds
        response: requests.Response = self._local.session.request(
            method,
            url,
            json=body,
            headers={"Accept": "application/json", **(headers or {})},
            auth=TokenAuth(token),
            timeout=SILENCE,
            stream=True,
            allow_redirects=False,
        )
        with response:
            response._content = read_bounded(response, max_bytes=MAX_BYTES, until=until)
        return response


def check_address(address: str) -> str:
    """The URL without a trailing slash. Raises SourceError."""
    if not is_server_address(address):
        raise SourceError(f"{address[:200]} is not an address like https://unleash.example.com.")
    return address.rstrip("/").removesuffix("/admin").removesuffix("/api")


def _read_answer(url: str, answer: requests.Response, absent: tuple[int, ...], *, writes: bool) -> Any:
    status = answer.status_code
    if 300 <= status < 400:
        where = answer.headers.get("Location", "")[:200]
        raise SourceError(f"{url}: answers with a redirect to {where}. Redirects are not followed.")
    if status in absent:
        return None
    if status in (401, 403):
        raise UnexpectedStatus(f"{url}: does not accept the token (status {status}).", status)
    if status != 200 and not (writes and 200 <= status < 300):
        said = f": {answer.content[:MAX_QUOTED].decode(errors='replace')}" if writes else ""
        raise UnexpectedStatus(f"{url}: answers with status {status}{said}.", status)
    if writes and not answer.content:
        return None
    try:
        return parse_json(answer.content)
    except AppError as error:
        details = list(map(str, error.details))
        raise SourceError(
            f"{url}: its answer cannot be read: {'; '.join(details) or error.message}"
        ) from None


def _read_wanted_wait(url: str, answer: requests.Response) -> float | None:
    """The seconds that the server asks to wait; None if it states none."""
    seconds = read_retry_after(answer.headers.get("Retry-After", ""))
    if seconds is not None and seconds > MAX_WAIT:
        raise SourceError(f"{url}: status {answer.status_code}; asks to wait for {seconds:.0f} seconds.")
    return seconds
