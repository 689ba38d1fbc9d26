"""Remembers what contexts got, bounded in bytes, for those who ask again without an ETag."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

LIMIT = 32_000_000  # bytes in a process
ENTRY = 300  # bytes of an entry beside its value: two strings and their places. Measured


class Remembered(Generic[K, T]):
    """Values by key. When the younger half of the memory is full, the older half is forgotten as a whole.

    What is asked for moves to the younger half, so it stays, and nothing has to be put in order for that. Threads may
    share it.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit // 2
        self._younger: dict[K, tuple[T, int]] = {}  # with their sizes
        self._older: dict[K, tuple[T, int]] = {}
        self._nbytes = 0  # of the younger half

    def get(self, key: K) -> T | None:
        kept = self._younger.get(key)
        if kept is None:
            kept = self._older.pop(key, None)
            if kept is None:
                return None
            self._add(key, kept)
        return kept[0]

    def put(self, key: K, value: T, nbytes: int) -> None:
        """Adds a value of this size. One that is larger than half the limit is not kept."""
        if nbytes + ENTRY <= self._limit:
            self._add(key, (value, nbytes + ENTRY))

    def _add(self, key: K, kept: tuple[T, int]) -> None:
        if key in self._younger:
            return
        if self._nbytes + kept[1] > self._limit:
            self._older, self._younger, self._nbytes = self._younger, {}, 0
        self._younger[key] = kept
        self._nbytes += kept[1]

    def clear(self) -> None:
        self._younger, self._older, self._nbytes = {}, {}, 0
