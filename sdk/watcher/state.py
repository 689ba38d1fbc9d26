"""The state that decides whether an SDK answer is still right. Read from the replica if one answers."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

import psycopg
from django.db import DatabaseError

from flagadmin.core.db.connections import Connection, connect
from flagadmin.core.db.outages import REPLICA, has_replica, replica
from sdk.base import TokenScope

_REVISIONS = "SELECT project_id, revision FROM projects_projectrevision"
_TOKENS = """
SELECT id, kind, environment_id, all_projects, secret_hash, expires_at FROM groups_apitoken WHERE id = ANY(%s)
"""
_SCOPES = "SELECT token_id, id, project_id FROM groups_apitokenproject WHERE token_id = ANY(%s) ORDER BY id"


@dataclass(frozen=True, slots=True)
class TokenState:
    """A stored token. ``scopes`` are (row id, project id); a scope that is removed and added again has a new id."""

    kind: str
    environment: str | None
    all_projects: bool
    secret_hash: str
    expires_at: datetime | None
    scopes: tuple[tuple[int, str], ...]

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class State:
    """``revisions`` by project id; ``tokens`` in use by id, None if it no longer exists.

    A token that is missing from ``tokens`` has not been read yet.
    """

    revisions: Mapping[str, int]
    tokens: Mapping[int, TokenState | None]
    _digests: dict[int | None, bytes] = field(default_factory=dict, compare=False, repr=False)

    def scope_of(self, token: TokenState) -> TokenScope:
        """The token's scope, as read by `read_token_scope`."""
        revisions = self.revisions
        if not token.all_projects:
            ids = (project for _, project in token.scopes)
            revisions = {project: self.revisions[project] for project in ids if project in self.revisions}
        return TokenScope(str(token.environment), dict(sorted(revisions.items())), token.all_projects)

    def fingerprint(self, token_id: int) -> bytes | None:
        """A hash of the token and everything that it can read; None without such a token.

        For later comparison: a whole state would take megabytes with many projects.
        """
        token = self.tokens.get(token_id)
        if token is None:
            return None
        if token_id not in self._digests:
            read = self._make_digest_of_all() if token.all_projects else self.scope_of(token)
            self._digests[token_id] = _make_digest(token, read)
        return self._digests[token_id]

    def _make_digest_of_all(self) -> bytes:
        if None not in self._digests:
            self._digests[None] = _make_digest(sorted(self.revisions.items()))
        return self._digests[None]


def _make_digest(*values: object) -> bytes:
    return hashlib.sha256(repr(values).encode()).digest()


def find_changed_projects(before: State, after: State) -> frozenset[str]:
    """The ids of projects that are new, gone or have another revision."""
    return frozenset(project for project, _ in before.revisions.items() ^ after.revisions.items())


@dataclass(frozen=True, slots=True)
class SdkState:
    """The data that determines SDK answers: revisions by project id, and (row id, project id) of each token."""

    revisions: dict[str, int]
    scopes: dict[int, list[tuple[int, str]]]


class SdkReader(Protocol):
    async def read(self, primary: Connection, tokens: list[int]) -> SdkState: ...


async def read_state(primary: Connection, sdk: SdkReader, tokens: Collection[int]) -> State:
    """Reads the state as ordinary requests see it.

    Reads tokens from the primary database, and their scopes and revisions from the database that serves SDKs (``sdk``),
    which may be a replica.
    """
    ids = list(tokens)
    read = await sdk.read(primary, ids)
    stored = await _read_tokens(primary, read, ids) if ids else {}
    return State(read.revisions, {token: stored.get(token) for token in ids})


async def read_sdk_state(sdk: Connection, tokens: list[int]) -> SdkState:
    revisions: dict[str, int] = dict(await (await sdk.execute(_REVISIONS)).fetchall())
    scopes: dict[int, list[tuple[int, str]]] = {}
    if tokens:
        for token, row, project in await (await sdk.execute(_SCOPES, [tokens])).fetchall():
            scopes.setdefault(token, []).append((row, project))
    return SdkState(revisions, scopes)


async def _read_tokens(
    primary: Connection, read: SdkState, tokens: list[int]
) -> dict[int, TokenState | None]:
    rows = await (await primary.execute(_TOKENS, [tokens])).fetchall()
    return {
        token: TokenState(
            kind, environment, all_projects, secret_hash, expires, tuple(read.scopes.get(token, ()))
        )
        for token, kind, environment, all_projects, secret_hash, expires in rows
    }


log = logging.getLogger("flagadmin.replica")

T = TypeVar("T")

NAME = "flagadmin watcher"  # the connection's application_name
LATE = 1.0  # seconds after which a read counts as a loss of the replica
RETRY = 1.0  # seconds between attempts to return to it

FAILURES = (psycopg.Error, DatabaseError, OSError, TimeoutError)


class ReplicaReader:
    """Keeps one connection to the replica, and reports to `flagadmin.core.db.outages` whether it answers."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._returning: asyncio.Task[None] | None = None
        self._revisions: dict[str, int] = {}  # the primary's, read last while the replica is lost

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if self._returning is not None:
                self._returning.cancel()
                self._returning = None
            await self._close()

    async def read(self, primary: Connection, tokens: list[int]) -> SdkState:
        """Reads from the replica, or from the primary if there is none or it does not answer."""
        if has_replica() and not replica.is_lost:
            try:
                return await _is_within(LATE, self._read_replica(tokens))
            except FAILURES as error:
                log.debug("The replica failed: %s", error)
                replica.note_lost()
                await self._close()
        state = await read_sdk_state(primary, tokens)
        if replica.is_lost:
            self._revisions = state.revisions
            if self._returning is None or self._returning.done():
                self._returning = asyncio.create_task(self._return())
        return state

    async def _read_replica(self, tokens: list[int]) -> SdkState:
        if self._connection is None:
            self._connection = await connect(REPLICA, NAME)
        return await read_sdk_state(self._connection, tokens)

    async def _return(self) -> None:
        """Waits until the replica answers and has everything that SDKs have already got from the primary."""
        while replica.is_lost:
            await asyncio.sleep(RETRY)
            revisions = self._revisions
            try:
                state = await _is_within(LATE, self._read_replica([]))
            except FAILURES as error:
                log.debug("The replica still fails: %s", error)
                await self._close()
            else:
                if all(
                    state.revisions.get(project, 0) >= revision for project, revision in revisions.items()
                ):
                    replica.note_reached()

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _is_within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Raises TimeoutError without waiting for the cancellation: psycopg tries to cancel a query for ten seconds."""
    task = asyncio.create_task(work)
    task.add_done_callback(_forget_failure)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()


def _forget_failure(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()
