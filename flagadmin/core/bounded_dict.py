"""A dictionary that keeps only so many of its entries: those that were set last."""

from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """``move_to_end`` keeps an entry that is still used. Setting is thread-safe, as all else of a dictionary is.

    An entry that is set again is never absent for readers.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._lock = Lock()

    def __setitem__(self, key: K, value: V) -> None:
        with self._lock:
            super().__setitem__(key, value)
            with suppress(KeyError):  # another thread has dropped it
                self.move_to_end(key)
            if len(self) > self.size:
                self.popitem(last=False)
