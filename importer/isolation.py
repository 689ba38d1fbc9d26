"""Work on large bodies, beside the other requests of the same process."""

import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from threading import Lock
from typing import ParamSpec, TypeVar

from django.conf import settings

from flagadmin.server.gc_control import no_collection
from flagadmin.server.worker_processes import in_own_process

P = ParamSpec("P")
R = TypeVar("R")

SWITCH_INTERVAL = 0.0002  # seconds; Python's own is 0.005


class _HeavyWork(ContextDecorator):
    """While any thread is inside, or runs a function decorated with it, the process works differently in two ways.

    Nobody looks for cycles among the millions of objects that documents of many flags are. And other threads get
    their turn sooner: one that answers a small request would else wait five milliseconds each time it comes back
    from the database.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            no_collection.__enter__()
            sys.setswitchinterval(SWITCH_INTERVAL)

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            no_collection.__exit__()
            if self._inside == 0:
                sys.setswitchinterval(self._interval)


heavy_work = _HeavyWork()


def beside(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """``work(*args, **kwargs)``, in a process of its own if it is about a body of many bytes."""
    if size > settings.IMPORT_PROCESS_BYTES:
        return in_own_process(work, *args, **kwargs)
    return work(*args, **kwargs)
