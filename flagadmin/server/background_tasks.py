"""What `manage.py serve` does beside answering requests. Apps register it in their `AppConfig.ready`.

runtime.at_start(create_initial_tokens)
runtime.every(timedelta(minutes=10), forget_old_instances)
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import close_old_connections, connection

log = logging.getLogger("flagadmin.runtime")

Task = Callable[[], object]

# Any number: PostgreSQL's advisory locks are told apart by it.
MAINTENANCE_LOCK = 7_325_001
LONGEST_PAUSE = 60.0  # seconds


@dataclass
class Periodic:
    """A task with its interval, and when it is due next (in seconds of the monotonic clock)."""

    interval: timedelta
    task: Task
    due: float = 0.0


# Where people reach this server, without a slash at the end; `serve` sets it before anything starts.
address = settings.PUBLIC_URL

_at_start: list[Task] = []
_periodic: list[Periodic] = []


def at_start(task: Task) -> None:
    """Run once after migrating, before the first request. It must do no harm when it has run before."""
    if task not in _at_start:
        _at_start.append(task)


def every(interval: timedelta, task: Task) -> None:
    """Run at every interval while serving, in the one maintenance thread, on one server at a time."""
    if all(periodic.task != task for periodic in _periodic):
        _periodic.append(Periodic(interval, task))


def run_at_start() -> None:
    for task in _at_start:
        task()


def start_maintenance(stop: threading.Event) -> threading.Thread:
    """The thread that runs what is due until `stop` is set."""
    thread = threading.Thread(target=_maintain, args=(stop,), name="maintenance", daemon=True)
    thread.start()
    return thread


def _maintain(stop: threading.Event) -> None:
    while not stop.wait(_pause()):
        run_due(time.monotonic())


def _pause() -> float:
    now = time.monotonic()
    return max(0.0, min([periodic.due - now for periodic in _periodic] + [LONGEST_PAUSE]))


def run_due(now: float) -> None:
    """Run the tasks that are due; one that fails is logged and tried again at its next time."""
    close_old_connections()
    for periodic in _periodic:
        if periodic.due <= now:
            periodic.due = now + periodic.interval.total_seconds()
            try:
                _run_alone(periodic.task)
            except Exception:
                log.exception("Maintenance failed: %s", _name(periodic.task))
    close_old_connections()


def _run_alone(task: Task) -> None:
    """Unless another server is at it: then it is done there."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MAINTENANCE_LOCK])
        if cursor.fetchone() == (True,):
            try:
                task()
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [MAINTENANCE_LOCK])


def _name(task: Task) -> str:
    return f"{task.__module__}.{getattr(task, '__qualname__', task)}"
