"""Forks workers, runs long work in a separate process, and ends processes cleanly on SIGTERM."""

import ctypes
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from flagadmin.core.change_options import ChangeOptions, changing, get_change_options, get_comment
from flagadmin.core.errors import ServiceUnavailable
from flagadmin.core.http.logs import request_id
from flagadmin.core.server.memory import on_one_stack

log = logging.getLogger("flagadmin.processes")

SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})
SHUTDOWN_TIMEOUT = 20  # for running requests after SIGTERM
SEND_TIMEOUT = 3  # for completed responses

_stop: Callable[[], object] | None = None
_is_busy: Callable[[], bool] = bool

P = ParamSpec("P")
R = TypeVar("R")

# Forks from a process that has only loaded the application, because this process has threads and a fresh
# interpreter takes seconds to start. The fork server starts with the first call and ends with this process.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["flagadmin.forkserver_preload"])

POLITENESS = 10  # for nice(2): pages and SDK requests have priority
_one_at_a_time = threading.Lock()


_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # prctl(2)


def fork_from_now_on() -> None:
    """Makes multiprocessing fork this process. It must not have threads that could hold a lock at that moment.

    A fork starts with SIGINT and SIGTERM blocked: this process's handlers would receive them.
    """
    multiprocessing.set_start_method("fork", force=True)
    masks = []
    os.register_at_fork(
        before=lambda: masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop()),
    )


def begin_fork(name: str) -> None:
    """Call this first in a fork. ``name`` is for ps, up to 15 characters. The fork gets SIGTERM if its parent ends:
    if it outlived `serve`, it would keep the port and the database in use at the next start.
    """
    parent = multiprocessing.parent_process()
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):  # Linux has it
        prctl(_PR_SET_NAME, name.encode())
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if parent is None or os.getppid() != parent.pid:
        os._exit(1)


def run_in_process(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls ``work`` in a new process and returns its result or raises its exception. One call at a time.

    ``work`` must be a module-level function; arguments and results are pickled. It uses the database settings
    of this process but no transaction of it, and makes changes as they would be made here. Raises ServiceUnavailable
    if the process is killed.
    """
    # The comment is read here, because the function that reads it from a request cannot be pickled.
    options = replace(get_change_options(), comment=get_comment())
    with _one_at_a_time:
        executor = ProcessPoolExecutor(1, _context, initializer=_begin)
        try:
            return executor.submit(_run_with, options, request_id.get(), work, args, kwargs).result()
        except BrokenProcessPool:
            log.exception("The process running %s ended early", work.__name__)
            raise ServiceUnavailable(
                "The process handling this request ended early. Nothing was saved. Try again."
            ) from None
        finally:
            # Waits, which takes 15 ms: if SIGTERM arrived during shutdown, both processes could wait for each
            # other.
            executor.shutdown()


def start_process(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Calls ``work`` in a new process, and does not wait for it.

    The process ends with this one, and at once on SIGTERM: interrupted work must be resumed later.
    """
    identifier = request_id.get()
    _context.Process(target=_run_on_its_own, args=(identifier, work, args, kwargs), daemon=True).start()


def end_with_parent() -> None:
    """Ends this process, which multiprocessing started, when its parent has ended."""
    parent = multiprocessing.parent_process()
    assert parent

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent-watch", daemon=True).start()


def set_stop_handler(stop: Callable[[], object], is_busy: Callable[[], bool]) -> None:
    """Sets the functions that `stop_on_sigterm` calls to stop this server and to check for running requests."""
    global _stop, _is_busy
    _stop, _is_busy = stop, is_busy


def stop_on_sigterm(seconds: float) -> None:
    """Makes the first SIGTERM stop this process: at once before it serves, otherwise when requests are complete.

    Waits at most `seconds` for running requests, and less for clients that send or read slowly. Stopping a service
    signals all its processes, and then `serve` signals its workers again; a second SIGTERM would make Granian's own
    handler block forever, so signals are blocked and read by a thread. SIGINT is handled by `serve` alone.

    Must be called before other threads start, because threads inherit the signal mask.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def wait() -> None:
        signal.sigwait({signal.SIGTERM})
        if _stop:
            _stop()
            _wait_for_requests(seconds)
        os._exit(1)

    threading.Thread(target=wait, name="stop-watch", daemon=True).start()


def _wait_for_requests(seconds: float) -> None:
    """Waits until running requests are complete and clients have had time to receive the responses."""
    begin = busy = now = time.monotonic()
    while now - begin < seconds and now - busy < min(seconds, SEND_TIMEOUT):
        time.sleep(0.02)
        now = time.monotonic()
        if _is_busy():
            busy = now
    if _is_busy():
        log.error("Requests are still running %s s after SIGTERM. Stopping this worker anyway.", seconds)


def _begin(on_sigterm: signal.Handlers = signal.SIG_IGN) -> None:
    """Ignores signals, because the parent finishes its requests first and this process ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, on_sigterm)
    end_with_parent()
    os.nice(POLITENESS)


def _run_on_its_own(*arguments: Any) -> None:
    _begin(signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    _run(*arguments)


@on_one_stack
def _run(identifier: str, work: Callable[..., R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    request_id.set(identifier)
    return work(*args, **kwargs)


def _run_with(options: ChangeOptions, *arguments: Any) -> Any:
    with changing(**vars(options)):
        return _run(*arguments)
