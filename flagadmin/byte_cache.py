"""A least-recently-used cache whose limit is a number of bytes rather than of values."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)


class ByteCache(Generic[K, V]):
    """Holds values that know their size in bytes. Thread-safe."""

    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()
        self.nbytes = 0

    def get(self, key: K) -> V | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V, *, limit: int) -> None:
        """Adds or replaces a value. The last one stays even if it alone is larger than the limit."""
        with self._lock:
            self._drop(key)
            self._values[key] = value
            self.nbytes += value.nbytes
            while self.nbytes > limit and len(self._values) > 1:
                self._drop(next(iter(self._values)))

    def drop(self, key: K) -> None:
        with self._lock:
            self._drop(key)

    def entries(self) -> list[tuple[K, V]]:
        with self._lock:
            return list(self._values.items())

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self.nbytes = 0

    def _drop(self, key: K) -> None:
        if key in self._values:
            self.nbytes -= self._values.pop(key).nbytes
