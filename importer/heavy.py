"""Work on large bodies, beside the other requests of the same process."""

import gc
import sys
from contextlib import ContextDecorator
from threading import Lock

SWITCH_INTERVAL = 0.0002  # seconds; Python's own is 0.005


class _HeavyWork(ContextDecorator):
    """While any thread is inside, or runs a function decorated with it, the process works differently in two ways.

    The garbage collector is off: documents of many flags are millions of objects that all live to the end, and to
    look through them for circles again and again takes longer than the work. Reference counts free everything as
    usual. And other threads get their turn sooner: one that answers a small request would else wait five
    milliseconds each time it comes back from the database.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            gc.disable()
            sys.setswitchinterval(SWITCH_INTERVAL)

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                gc.enable()
                sys.setswitchinterval(self._interval)


heavy_work = _HeavyWork()
