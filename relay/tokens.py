"""The tokens of a relay's clients: learned from the clients, confirmed by the upstream, stored on disk.

Calls the upstream server. It may be slow, broken or hostile, so time and size are bounded.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import urllib3
from urllib3.exceptions import HTTPError

from flagadmin import __version__
from flagadmin.core.caches import BoundedDict
from flagadmin.core.errors import AuthenticationRequired, ServiceUnavailable
from relay.storage import Storage

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


FILE = "tokens.json"
MAX_TOKENS = 10_000
MAX_AT_ONCE = 1_000  # tokens in a question
MAX_REFUSED = 10_000
MAX_ASKING = (
    1_000  # token look-ups at the same time; above that, invented tokens delay only other unknown ones
)
REFUSED_FOR = 10.0  # seconds for which a refusal of the upstream counts
BACKEND, FRONTEND = "backend", "frontend"
KINDS = {"client": BACKEND, "backend": BACKEND, "frontend": FRONTEND, "proxy": FRONTEND}
_SECRET = re.compile(r"[\x21-\x7e]{8,1000}")
_SCOPE = re.compile(r"(?P<project>[^:\s]+):(?P<environment>[^.\s]+)\.\S+")

Scope = tuple[str, tuple[str, ...]]
"""An environment, and sorted projects; ``("*",)`` for all."""


@dataclass(frozen=True, slots=True)
class Token:
    secret: str
    kind: str
    environment: str
    projects: tuple[str, ...]

    @property
    def scope(self) -> Scope:
        return self.environment, self.projects

    def covers(self, scope: Scope) -> bool:
        """Whether it can read everything in the scope."""
        environment, projects = scope
        return self.environment == environment and (
            self.projects == ("*",) or set(projects) <= set(self.projects)
        )

    def as_document(self) -> dict[str, Any]:
        """The token in the form of `/edge/validate`."""
        kind = "client" if self.kind == BACKEND else self.kind
        return {
            "token": self.secret,
            "type": kind,
            "projects": list(self.projects),
            "environment": self.environment,
        }


Ask = Callable[..., Awaitable[Answer]]


class Tokens:
    """All methods are called in the event loop."""

    def __init__(self, storage: Storage, ask: Ask, *, covering: Sequence[str] = ()) -> None:
        """If there are `covering` tokens, only tokens within their scopes are served."""
        self._storage = storage
        self._ask = ask
        self._covering = covering
        self._known: dict[str, Token] = {}
        self._tickets: dict[str, str] = {}  # secrets by ticket, filled on first use
        self._refused: BoundedDict[str, float] = BoundedDict(MAX_REFUSED)  # by secret: the end of the refusal
        self._asking: dict[str, asyncio.Task[None]] = {}
        self.when_known: Callable[[Token], Awaitable[None]] | None = None
        self.when_asked: Callable[[UpstreamFailed | None], object] = lambda failure: None
        """Called after each question to the upstream, with its failure, if any."""
        for document in _read_documents(storage.read(FILE)):
            if token := _read_token(document):
                self._known[token.secret] = token
        self._drop_uncovered()

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> list[Token]:
        return list(self._known.values())

    def get(self, secret: str) -> Token | None:
        return self._known.get(secret)

    def ticket_of(self, token: Token) -> str:
        """The ticket with which a browser opens a stream: the same at all relays, and valid only for that stream."""
        return hashlib.blake2b(token.secret.encode(), key=b"ofrep events", digest_size=16).hexdigest()

    def find_ticket(self, ticket: str) -> Token:
        """Raises AuthenticationRequired."""
        if not self._tickets:
            self._tickets = {self.ticket_of(token): token.secret for token in self._known.values()}
        token = self._known.get(self._tickets.get(ticket, ""))
        if token is None:
            raise AuthenticationRequired("This ticket is not valid any more. Evaluate the flags for another.")
        return token

    async def find(self, secret: str) -> Token:
        """Finds a token. Raises AuthenticationRequired if the upstream does not know it, ServiceUnavailable if it
        could not be asked.
        """
        token = self._known.get(secret)
        if token is None:
            token = await self._learn(secret)
        return token

    async def _learn(self, secret: str) -> Token:
        if not _SECRET.fullmatch(secret) or self._refused.get(secret, 0.0) > time.monotonic():
            raise AuthenticationRequired("API token not found.")
        if len(self._known) >= MAX_TOKENS:
            raise ServiceUnavailable("This relay has as many tokens as it can keep.")
        if any(own not in self._known and own not in self._refused for own in self._covering):
            raise ServiceUnavailable("This relay does not know yet what its own tokens cover.")
        if secret not in self._asking and len(self._asking) >= MAX_ASKING:
            raise ServiceUnavailable("Too many tokens are being asked about. Try again later.")
        if secret not in self._asking:
            self._asking[secret] = asyncio.ensure_future(self.ask_about([secret]))
            self._asking[secret].add_done_callback(lambda _: self._asking.pop(secret, None))
        try:
            await asyncio.shield(self._asking[secret])
        except UpstreamFailed as error:
            raise ServiceUnavailable(
                f"This token is not known here yet, and the upstream could not be asked. {error}"
            ) from error
        token = self._known.get(secret)
        if token is None:
            hint = " This relay serves only what its own tokens cover." if self._covering else ""
            raise AuthenticationRequired(f"API token not found.{hint}")
        return token

    async def check_all(self) -> None:
        """Asks about all tokens again. Raises UpstreamFailed."""
        secrets = list(self._known)
        for first in range(0, len(secrets), MAX_AT_ONCE):
            await self.ask_about(secrets[first : first + MAX_AT_ONCE])

    async def ask_about(self, secrets: Sequence[str]) -> None:
        """Adopts the upstream's answer about these tokens. Raises UpstreamFailed and then changes nothing."""
        try:
            valid = await self._find_valid(secrets)
        except UpstreamFailed as error:
            self.when_asked(error)
            raise
        self.when_asked(None)
        await self._keep(secrets, valid)

    async def _find_valid(self, secrets: Sequence[str]) -> list[Token]:
        answer = await self._ask("POST", "/edge/validate", body={"tokens": list(secrets)})
        if answer.status == 404:
            return [token for secret in secrets if (token := await self._try(secret))]
        if answer.status != 200:
            raise UpstreamFailed(f"The upstream answered {answer.status} to a question about tokens.")
        return _read_valid(answer, secrets)

    async def _try(self, secret: str) -> Token | None:
        """For servers without `/edge/validate`: reads the scope from the token, and tries whether it can read flags."""
        answer = await self._ask("GET", "/api/client/features", token=secret)
        if answer.status in (401, 403):
            return None
        match = _SCOPE.fullmatch(secret)
        if answer.status != 200 or match is None:
            raise UpstreamFailed(f"The upstream answered {answer.status} to a question about flags.")
        return Token(secret, BACKEND, match["environment"], (match["project"],))

    async def _keep(self, secrets: Sequence[str], valid: Sequence[Token]) -> None:
        before = {secret: self._known.get(secret) for secret in secrets}
        for secret in secrets:
            self._known.pop(secret, None)
        for token in valid:
            self._known[token.secret] = token
        self._drop_uncovered()
        for secret in set(secrets).difference(self._known):
            self._refused[secret] = time.monotonic() + REFUSED_FOR
        if before != {secret: self._known.get(secret) for secret in secrets}:
            self._tickets = {}
            documents = [token.as_document() for token in self._known.values()]
            self._storage.write(FILE, orjson.dumps(documents))
        for token in valid:
            is_new = before[token.secret] != token and token.secret in self._known
            if is_new and self.when_known is not None:
                await self.when_known(token)

    def _drop_uncovered(self) -> None:
        own = [self._known[secret] for secret in self._covering if secret in self._known]
        for token in self.all() if self._covering else ():
            if not any(each.covers(token.scope) for each in own):
                del self._known[token.secret]


def _read_valid(answer: Answer, secrets: Sequence[str]) -> list[Token]:
    document = answer.read_json()
    documents = document.get("tokens") if isinstance(document, dict) else None
    if not isinstance(documents, list):
        raise UpstreamFailed("The upstream's answer about tokens has another shape.")
    in_question = set(secrets)
    tokens = [token for each in documents if (token := _read_token(each))]
    return [token for token in tokens if token.secret in in_question]


def _read_documents(content: bytes | None) -> list[Any]:
    try:
        documents = orjson.loads(content or b"[]")
    except orjson.JSONDecodeError:
        return []
    return documents if isinstance(documents, list) else []


def _read_token(document: Any) -> Token | None:
    """None if it is not an SDK token."""
    if not isinstance(document, dict):
        return None
    secret, kind, environment = (document.get(name) for name in ("token", "type", "environment"))
    projects = document.get("projects")
    if not (isinstance(secret, str) and isinstance(kind, str) and isinstance(environment, str)):
        return None
    if kind not in KINDS or not isinstance(projects, list) or not all(isinstance(p, str) for p in projects):
        return None
    scope = ("*",) if "*" in projects else tuple(sorted(set(projects)))
    return Token(secret, KINDS[kind], environment, scope)
