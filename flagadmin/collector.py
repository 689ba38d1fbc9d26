"""Python's cycle collector, held off where it could only look in vain."""

import gc
from contextlib import ContextDecorator
from threading import Lock


class _NoCollection(ContextDecorator):
    """While any thread is inside, or runs a function decorated with it, the process looks for no cycles.

    For work that makes many objects and no cycles: compiled definitions, outcomes, the rows of an import. They all
    live to the end, and to look through them again and again takes longer than the work. Reference counts free
    everything as usual.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            gc.disable()

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.enable()


no_collection = _NoCollection()
