"""Python's cycle collector, held off where it could only look in vain."""

import gc
from contextlib import ContextDecorator
from threading import Lock
from time import monotonic

LONGEST = 5.0  # seconds


class _NoCollection(ContextDecorator):
    """While any thread is inside, or runs a function decorated with it, the process looks for no cycles.

    For work that makes many objects and no cycles: compiled definitions, outcomes, the rows of an import. They all
    live to the end, and to look through them again and again takes longer than the work. Reference counts free
    everything as usual.

    A busy process always has some thread inside. So that others' cycles do not pile up there, whoever leaves after
    ``LONGEST`` without a collection lets the collector work until the next one enters.
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
            if self._inside == 0 or monotonic() - self._since > LONGEST:
                gc.enable()


no_collection = _NoCollection()
