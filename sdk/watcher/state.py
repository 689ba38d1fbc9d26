"""The state that decides whether an SDK answer is still right: revisions of projects, and the tokens in use."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from flagadmin.core.db.async_connections import Connection
from sdk.token_scope import TokenScope

_REVISIONS = "SELECT project_id, revision FROM projects_projectrevision"
_TOKENS = """
SELECT id, kind, environment_id, all_projects, secret_hash, expires_at FROM groups_apitoken WHERE id = ANY(%s)
"""
_SCOPES = "SELECT token_id, id, project_id FROM groups_apitokenproject WHERE token_id = ANY(%s) ORDER BY id"


@dataclass(frozen=True, slots=True)
class TokenState:
    """A stored token. ``scopes`` are (row id, project id); a scope that is taken away and given again has a new id."""

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
        """Returns what the token can read, as `read_token_scope` reads it."""
        revisions = self.revisions
        if not token.all_projects:
            ids = (project for _, project in token.scopes)
            revisions = {project: self.revisions[project] for project in ids if project in self.revisions}
        return TokenScope(str(token.environment), dict(sorted(revisions.items())), token.all_projects)

    def fingerprint(self, token_id: int) -> bytes | None:
        """A hash of the token and of all that it can read, or None without such a token.

        To compare later: keeping a whole state would take megabytes where there are many projects.
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
    """The data that SDK answers are made from: revisions by project id, and (row id, project id) of each token."""

    revisions: dict[str, int]
    scopes: dict[int, list[tuple[int, str]]]


class SdkReader(Protocol):
    async def read(self, primary: Connection, tokens: list[int]) -> SdkState: ...


async def read_state(primary: Connection, sdk: SdkReader, tokens: Collection[int]) -> State:
    """Reads the state as ordinary requests see it.

    Tokens are read from the primary database; their scopes and revisions from where SDK answers are made from
    (``sdk``), which may be a replica.
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
