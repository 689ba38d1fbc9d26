"""Long work in a process of its own: the requests beside it keep this one's interpreter to themselves."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from flagadmin.errors import ServiceUnavailable
from flagadmin.http.logs import request_id

log = logging.getLogger("flagadmin.processes")

SECONDS_TO_FINISH = 20  # for requests under way when told to stop
SECONDS_TO_SEND = 3  # for answers that are made

_stop: Callable[[], object] | None = None
_is_busy: Callable[[], bool] = bool

P = ParamSpec("P")
R = TypeVar("R")

# Forked from a process that has loaded the application and does nothing else: it starts with the first work and ends
# with this process. A fresh interpreter would take a second or two each time, and this one has threads.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["flagadmin.server.forkserver_preload"])

POLITENESS = 10  # of nice(2): whoever waits for a page or an SDK comes first
_one_at_a_time = threading.Lock()


def in_own_process(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """``work(*args, **kwargs)`` in a fresh process: its result, or what it raises. One at a time, the next one waits.

    ``work`` is a function of a module, and everything is pickled on its way. The database is the settings' own, and
    no transaction is shared. The process ends with this one, so its transaction does too.

    Raises ServiceUnavailable when it was killed before it was done.
    """
    with _one_at_a_time:
        executor = ProcessPoolExecutor(1, _context, initializer=_begin)
        try:
            return executor.submit(_run, request_id.get(), work, args, kwargs).result()
        except BrokenProcessPool:
            log.exception("The process of %s ended before it was done", work.__name__)
            raise ServiceUnavailable(
                "The process that was at it ended before it was done. Nothing of it was kept; try again."
            ) from None
        finally:
            # It is waited for: when this process was told to stop meanwhile, what tells that one to end could be
            # lost, and each would wait for the other. It takes some 15 ms.
            executor.shutdown()


def end_with_parent(end: Callable[[], object]) -> None:
    """Calls ``end`` when the process that started this one is gone; does nothing where nobody of ours did."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        end()

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


def when_told(stop: Callable[[], object], is_busy: Callable[[], bool]) -> None:
    """What `stop_when_told` calls, once this process serves: to stop, and to see whether requests are under way."""
    global _stop, _is_busy
    _stop, _is_busy = stop, is_busy


def stop_when_told(seconds: float) -> None:
    """The first SIGTERM stops this process: at once if it does not serve yet, else when its requests are answered.

    For these it waits so many seconds; for clients that are slow to send or to read, not as long. Whoever stops a
    service tells all its processes, and then `serve` tells its workers again: a second call of the server's own
    handler waits for ever, and holds the interpreter while it does. SIGINT is for `serve` alone.

    To be called before there are other threads: they inherit what is blocked.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})

    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        if _stop:
            _stop()
            _wait_for_requests(seconds)
        os._exit(1)

    threading.Thread(target=wait, name="stop-watch", daemon=True).start()


def _wait_for_requests(seconds: float) -> None:
    """Until they are answered and the answers had time to go out."""
    told = busy = now = time.monotonic()
    while now - told < seconds and now - busy < min(seconds, SECONDS_TO_SEND):
        time.sleep(0.02)
        now = time.monotonic()
        if _is_busy():
            busy = now
    if _is_busy():
        log.error(
            "Requests are still under way %s s after this worker was told to stop. It ends now.", seconds
        )


def _begin() -> None:
    """Told to stop, the parent finishes its requests first."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(lambda: os._exit(1))
    os.nice(POLITENESS)


def _run(identifier: str, work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    request_id.set(identifier)
    return work(*args, **kwargs)
