"""The garbage collector, kept away from large bodies."""

import gc
from contextlib import ContextDecorator
from threading import Lock


class _CollectorOff(ContextDecorator):
    """The collector is off while any thread is inside; as a decorator, while the function runs.

    Documents of many flags are millions of objects that all live to the end: to look through them for circles, again
    and again, finds none and takes longer than the work itself. Reference counts free everything as usual.
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


collector_off = _CollectorOff()
