"""Startup and periodic tasks of `manage.py serve`. Apps register them in `AppConfig.ready`:

background_tasks.run_on_startup(create_init_tokens)
background_tasks.run_every(timedelta(minutes=10), clean_usage)
background_tasks.run_throughout(deliver)
"""

import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import close_old_connections
from prometheus_client import Counter, Gauge, Histogram

from flagadmin.core.db.transactions import Lock, hold_if_free
from flagadmin.core.metrics import attach, process_name, sample
from flagadmin.core.server import process_metrics  # noqa: F401 - its samplers are those of this process, too
from flagadmin.core.server.memory import on_one_stack
from flagadmin.core.server.worker_processes import begin_fork

log = logging.getLogger("flagadmin.runtime")

Task = Callable[[], object]
Loop = Callable[[threading.Event], None]

SECONDS = Histogram("flagadmin_background_task_seconds", "Runs of periodic tasks.", ["task"])
FAILURES = Counter("flagadmin_background_task_failures_total", "Periodic tasks that failed.", ["task"])
LAST_SUCCESS = Gauge(
    "flagadmin_background_task_last_success_timestamp_seconds",
    "When a periodic task last succeeded, or another server was running it.",
    ["task", "process"],
)

MAX_PAUSE = 60.0  # seconds
END_SECONDS = 5.0


@dataclass
class PeriodicTask:
    """`due` is the next time to run, in seconds of the monotonic clock. For `everywhere`, see `run_every`."""

    interval: timedelta
    task: Task
    everywhere: bool = False
    due: float = 0.0


# The server's URL without a trailing slash; `serve` sets it before any task runs.
public_url = settings.PUBLIC_URL

_startup_tasks: list[Task] = []
_periodic: list[PeriodicTask] = []
_loops: list[Loop] = []


def run_on_startup(task: Task) -> None:
    """Registers a task to run after migrating, before the first request. It must be idempotent."""
    if task not in _startup_tasks:
        _startup_tasks.append(task)


def run_every(interval: timedelta, task: Task, *, everywhere: bool = False) -> None:
    """Registers a task to run periodically, in one maintenance thread, on one server at a time.

    With ``everywhere``, it runs on all servers, in a thread that does not wait for the other tasks: for work that
    must run on time. The task's own locks keep two servers from doing the same.
    """
    if all(periodic.task != task for periodic in _periodic):
        _periodic.append(PeriodicTask(interval, task, everywhere))


def run_throughout(loop: Loop) -> None:
    """Registers a loop that runs in its own thread on every server until the event is set."""
    if loop not in _loops:
        _loops.append(loop)


def run_startup_tasks() -> None:
    for task in _startup_tasks:
        task()


class MaintenanceProcess:
    """The process of the tasks and loops, a fork of `serve`. So `serve` needs no threads, and can fork workers."""

    def __init__(self) -> None:
        self._process: multiprocessing.Process | None = None
        self._begun, self._pause = -MAX_PAUSE, 0.0  # seconds

    def keep(self) -> None:
        """Starts the process, again if it has ended: at first at once, then after 1, 2, 4 to 60 seconds of life."""
        now, lived = time.monotonic(), time.monotonic() - self._begun
        if self._process:
            if self._process.is_alive() or lived < self._pause:
                return
            log.error("The maintenance process has ended (%s); starting another.", self._process.exitcode)
        self._pause = min(2 * self._pause or 1.0, MAX_PAUSE) if lived < MAX_PAUSE else 0.0
        self._begun = now
        self._process = multiprocessing.Process(target=_maintain_until_told)
        self._process.start()

    def end(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.join(2 * END_SECONDS)
            self._process.kill()


def _maintain_until_told() -> None:
    begin_fork("flagadmin-tasks")
    attach("main")
    stop = threading.Event()
    threads = start_maintenance(stop)
    signal.sigwait({signal.SIGTERM})
    stop.set()
    until = time.monotonic() + END_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def start_maintenance(stop: threading.Event) -> list[threading.Thread]:
    """Starts the threads that run due tasks until `stop` is set, and the threads of the loops."""
    threads = [
        threading.Thread(target=on_one_stack(_maintain), args=(stop, everywhere), name=name, daemon=True)
        for everywhere, name in ((False, "maintenance"), (True, "due"))
    ]
    threads += [
        threading.Thread(target=on_one_stack(loop), args=(stop,), name=loop.__module__, daemon=True)
        for loop in _loops
    ]
    for thread in threads:
        thread.start()
    return threads


def _maintain(stop: threading.Event, everywhere: bool) -> None:
    while not stop.wait(_pause(everywhere)):
        run_due_tasks(time.monotonic(), everywhere=everywhere)


def _pause(everywhere: bool) -> float:
    now = time.monotonic()
    waits = [periodic.due - now for periodic in _periodic if periodic.everywhere == everywhere]
    return max(0.0, min([*waits, MAX_PAUSE]))


def run_due_tasks(now: float, *, everywhere: bool = False) -> None:
    """Runs the due tasks. A failure is logged, and the task runs again after its interval."""
    close_old_connections()
    for periodic in _periodic:
        if periodic.everywhere == everywhere and periodic.due <= now:
            periodic.due = now + periodic.interval.total_seconds()
            name = _name_task(periodic.task)
            begun = time.perf_counter()
            try:
                if everywhere:
                    periodic.task()
                else:
                    _run_alone(periodic.task)
                LAST_SUCCESS.labels(name, process_name()).set_to_current_time()
            except Exception:
                log.exception("Periodic task failed: %s", name)
                FAILURES.labels(name).inc()
            SECONDS.labels(name).observe(time.perf_counter() - begun)
    if not everywhere:
        sample()
    close_old_connections()


def _run_alone(task: Task) -> None:
    """Runs the task, unless another server is running tasks."""
    with hold_if_free(Lock.MAINTENANCE) as is_free:
        if is_free:
            task()


def _name_task(task: Task) -> str:
    return f"{task.__module__}.{getattr(task, '__qualname__', task)}"
