"""Pauses Python's cyclic garbage collector during work that creates no cycles."""

import gc
from contextlib import ContextDecorator
from threading import Lock
from time import monotonic

MAX_PAUSE = 5.0  # seconds


class _GcPaused(ContextDecorator):
    """A context manager and decorator. The garbage collector is paused while any thread is inside.

    For work that creates many objects and no cycles, such as compiling definitions or importing flags:
    collecting takes longer than the work itself and frees nothing. Reference counting works as usual.

    A busy process always has a thread inside. So that cycles of other code do not pile up, a thread that
    leaves after ``MAX_PAUSE`` without a collection enables the collector until the next one enters.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._since = Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if gc.isenabled():
                self._since = monotonic()
                gc.disable()

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 or monotonic() - self._since > MAX_PAUSE:
                gc.enable()


gc_paused = _GcPaused()
