"""Remembers the tokens that people and services used last, so that most requests need no query for their caller.

Each worker's watcher (`sdk/watcher/`) reads them again, with their users and rights, whenever it reads the SDK tokens:
when a commit notifies it, and at least twice a second. A token counts only while that read began less than a second
ago and no process on this machine has committed a change since, so the next request after a deactivation is refused.
"""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from flagadmin.core.db import commits

SURE_SECONDS = 1.0
MAX_TOKENS = 30  # reading the rights of each takes some tenths of a millisecond
IDLE = 10.0  # seconds after which an unused token is no longer read

Row = tuple[Any, ...]


class _Read(NamedTuple):
    """Rows by the hashes of their secrets.

    ``began`` is on the monotonic clock; ``committed`` is the number of commits until then.
    """

    rows: Mapping[str, Row]
    began: float
    committed: int


_NOTHING = _Read({}, float("-inf"), 0)


class TokenMemory:
    """One for each worker. Thread-safe."""

    def __init__(self) -> None:
        self._read = _NOTHING
        self._used: dict[str, float] = {}  # with the time of the last use

    def find(self, digest: str) -> Row | None:
        """The row of the token with this hash, if it is certainly the stored one. Counts as a use."""
        read = self._read  # as a whole, which another thread may replace
        row = read.rows.get(digest)
        now = time.monotonic()
        if row is None or now - read.began >= SURE_SECONDS or commits.count() != read.committed:
            return None
        self._used[digest] = now
        return row

    def use(self, digest: str) -> None:
        """Makes the watcher read this existing token, unless too many are in use."""
        if digest in self._used or len(self._used) < MAX_TOKENS:
            self._used[digest] = time.monotonic()

    def list_used(self) -> list[str]:
        """The hashes of the tokens in use."""
        now = time.monotonic()
        for digest, used_at in list(self._used.items()):
            if now - used_at > IDLE:
                self._used.pop(digest, None)
        return list(self._used)

    def learn(self, rows: Mapping[str, Row], *, began: float, committed: int) -> None:
        """Replaces all rows with those of a read that began at this time, after this many commits."""
        self._read = _Read(rows, began, committed)

    def forget(self) -> None:
        self._read = _NOTHING


token_memory = TokenMemory()
