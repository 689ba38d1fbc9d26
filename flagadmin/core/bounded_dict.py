"""A dictionary that keeps only so many of its entries: those that were set last."""

from collections import OrderedDict
from threading import Lock
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """``move_to_end`` keeps an entry that is still used. Setting is thread-safe, as all else of a dictionary is."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self._lock = Lock()

    def __setitem__(self, key: K, value: V) -> None:
        with self._lock:
            self.pop(key, None)
            super().__setitem__(key, value)
            if len(self) > self.size:
                self.popitem(last=False)
