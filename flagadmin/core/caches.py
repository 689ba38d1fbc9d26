"""Caches whose size is bounded: by a number of entries, or of bytes."""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Generic, Protocol, TypeVar

from prometheus_client import Gauge

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedDict(OrderedDict[Key, Value]):
    """A dictionary that drops its first entry when it is full. ``move_to_end`` keeps an entry that is still used.

    Setting is thread-safe, like the other operations of a dictionary. Readers never miss an entry that is being
    replaced.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._lock = Lock()

    def __setitem__(self, key: Key, value: Value) -> None:
        with self._lock:
            super().__setitem__(key, value)
            with suppress(KeyError):  # another thread has dropped it
                self.move_to_end(key)
            if len(self) > self.size:
                self.popitem(last=False)


CACHE_BYTES = Gauge("flagadmin_cache_bytes", "Memory that a cache of a process takes.", ["cache", "process"])


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


class Sharing(Sized, Protocol):
    """A value that shares ``pieces`` with other values, by project. Its own size excludes them."""

    @property
    def pieces(self) -> Mapping[str, Sized]: ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)
S = TypeVar("S", bound=Sharing)


class ByteCache(Generic[K, V]):
    """Holds values that know their size in bytes. Put a value again when it has grown. Thread-safe."""

    def __init__(self) -> None:
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()
        self.nbytes = 0

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: K, value: V, *, limit: int) -> None:
        """Adds or replaces a value. The last one stays even if it alone is larger than the limit."""
        with self._lock:
            self._drop(key)
            self._add(key, value)
            while self.nbytes > limit and len(self._values) > 1:
                self._drop(next(iter(self._values)))

    def drop(self, key: K) -> None:
        with self._lock:
            self._drop(key)

    def entries(self) -> list[tuple[K, V]]:
        with self._lock:
            return [(key, value) for key, (value, _) in self._values.items()]

    def clear(self) -> None:
        with self._lock:
            for key in list(self._values):
                self._drop(key)

    def _add(self, key: K, value: V) -> None:
        size = value.nbytes
        self._values[key] = value, size
        self.nbytes += size

    def _drop(self, key: K) -> V | None:
        if key not in self._values:
            return None
        value, size = self._values.pop(key)
        self.nbytes -= size
        return value


class SharingCache(ByteCache[K, S]):
    """A cache of values that share pieces. A piece counts once, however many values have it."""

    def __init__(self) -> None:
        super().__init__()
        self._uses: Counter[int] = Counter()
        """The number of values that share a piece, by its identity."""

    def _add(self, key: K, value: S) -> None:
        super()._add(key, value)
        for piece in value.pieces.values():
            if not self._uses[id(piece)]:
                self.nbytes += piece.nbytes
            self._uses[id(piece)] += 1

    def _drop(self, key: K) -> S | None:
        dropped = super()._drop(key)
        if dropped is not None:
            for piece in dropped.pieces.values():
                self._uses[id(piece)] -= 1
                if not self._uses[id(piece)]:
                    del self._uses[id(piece)]
                    self.nbytes -= piece.nbytes
        return dropped
