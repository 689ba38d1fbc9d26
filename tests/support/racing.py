"""Actions at once, each on a connection of its own.

``race``: two of them, stopped where it matters and let go again. No sleeping, no luck. The first is stopped either
just before its first row lock (whatever it read before is then out of date) or just before its commit (whatever it
wrote is there and not yet to be seen). The second then runs until it is done or waits for the first; then the first
goes on.

``together``: any number, in whatever order.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from flagadmin.errors import AppError
from tests.support.live_server import PATIENCE

BEFORE_LOCK, BEFORE_COMMIT = "before its lock", "before its commit"
# By the other and by nobody else: PostgreSQL's own housekeeping locks tables for a moment too.
_IS_HELD_UP = "SELECT %s = ANY(pg_blocking_pids(%s))"

Work = Callable[[], Any]


class Racer(threading.Thread):
    """Does ``work`` on a connection of its own; ``result`` is what it gave, ``error`` what it raised."""

    def __init__(self, work: Work, stop: str | None = None) -> None:
        super().__init__(daemon=True)
        self.work, self.stop = work, stop
        self.reached, self.go, self.done = threading.Event(), threading.Event(), threading.Event()
        self.has_lock = False
        self.pid: int | None = None
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            connection.ensure_connection()
            self.pid = connection.connection.info.backend_pid
            commit = connection._commit  # type: ignore[attr-defined]
            connection._commit = lambda: self._at_commit(commit)  # type: ignore[attr-defined]
            with connection.execute_wrapper(self._at_statement):
                self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - told to the test, which asks for it
            self.error = error
        finally:
            connection.close()
            self.reached.set()
            self.done.set()

    def _at_statement(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        if not self.has_lock and (" FOR UPDATE" in sql or " FOR NO KEY UPDATE" in sql):
            self._pause(BEFORE_LOCK)
            self.has_lock = True
        return execute(sql, params, many, context)

    def _at_commit(self, commit: Work) -> Any:
        if self.has_lock:
            self._pause(BEFORE_COMMIT)
        return commit()

    def _pause(self, where: str) -> None:
        if self.stop == where and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(PATIENCE)

    def is_held_up_by(self, other: "Racer") -> bool:
        if self.pid is None:
            return False
        with connection.cursor() as cursor:
            cursor.execute(_IS_HELD_UP, [other.pid, self.pid])
            row = cursor.fetchone()
        return bool(row and row[0])


def race(first: Work, second: Work, *, stop: str) -> tuple[Any, Any]:
    """(result of the first, result of the second). What a racer raised is raised here."""
    racers = Racer(first, stop), Racer(second)
    racers[0].start()
    assert racers[0].reached.wait(PATIENCE), "the first never came to where it stops"
    racers[1].start()
    deadline = time.monotonic() + PATIENCE
    while not (racers[1].done.is_set() or racers[1].is_held_up_by(racers[0])):
        assert time.monotonic() < deadline, "the second neither ended nor waits"
        racers[1].done.wait(0.01)
    racers[0].go.set()
    for racer in racers:
        assert racer.done.wait(PATIENCE), "a racer hangs"
    for racer in racers:
        if racer.error is not None:
            raise racer.error
    return racers[0].result, racers[1].result


def together(*works: Work) -> list[Any]:
    """Their results, or the refusals they raised. What else one raises is raised here."""
    start = threading.Barrier(len(works), timeout=PATIENCE)

    def run(work: Work) -> Any:
        try:
            connection.ensure_connection()
            start.wait()
            return work()
        except AppError as refusal:
            return refusal
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))
