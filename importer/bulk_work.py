"""Keeps work on large import bodies from slowing down other requests of the same process."""

import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from threading import Lock
from time import perf_counter
from typing import ParamSpec, TypeVar

from django.conf import settings
from prometheus_client import Counter, Histogram

from flagadmin.core.errors import AppError
from flagadmin.core.server.worker_processes import run_in_process

P = ParamSpec("P")
R = TypeVar("R")

SWITCH_INTERVAL = 0.0002  # seconds; Python's own is 0.005


class _BulkWork(ContextDecorator):
    """A context manager and decorator for work on many objects.

    While any thread is inside, threads switch more often: a thread that answers a small request would otherwise
    wait five milliseconds after each query.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            sys.setswitchinterval(SWITCH_INTERVAL)

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._interval)


bulk_work = _BulkWork()

RUNS = Counter(
    "flagadmin_imports_total", "Work on import bodies, by what it was and how it ended.", ["work", "result"]
)
SECONDS = Histogram("flagadmin_import_seconds", "Work on import bodies.", ["work"])


def run_isolated(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls ``work(*args, **kwargs)``, in a separate process if its body of ``size`` bytes is large."""
    begun, result = perf_counter(), "failed"
    try:
        done = _run(size, work, *args, **kwargs)
        result = "done"
        return done
    except AppError as error:
        if error.status < 500:
            result = "refused"
        raise
    finally:
        RUNS.labels(work.__name__, result).inc()
        SECONDS.labels(work.__name__).observe(perf_counter() - begun)


def _run(size: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    if size > settings.IMPORT_PROCESS_BYTES:
        return run_in_process(work, *args, **kwargs)
    return work(*args, **kwargs)
