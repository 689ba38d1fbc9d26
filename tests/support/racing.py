"""Runs database actions concurrently, each on its own connection, to test race conditions.

``race`` runs two actions in a controlled order, without sleeping. The first pauses either just before its
first row lock (so what it has read becomes outdated) or just before its commit (so its writes are not visible
yet). The second then runs until it ends or waits for the first. Then the first continues.

``together`` runs any number of actions in no particular order.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from django.db import connection

from flagadmin.core.errors import AppError
from tests.support.live_server import PATIENCE

BEFORE_LOCK, BEFORE_COMMIT = "before its lock", "before its commit"
# Only a lock of the other racer counts: PostgreSQL's background processes also lock tables briefly.
_IS_HELD_UP = "SELECT %s = ANY(pg_blocking_pids(%s))"

Work = Callable[[], Any]


class Racer(threading.Thread):
    """Runs ``work`` on its own connection. ``result`` is what it returned, ``error`` what it raised."""

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
        except BaseException as error:  # noqa: BLE001 - re-raised in the test's thread
            self.error = error
        finally:
            connection.close()
            self.reached.set()
            self.done.set()

    def _at_statement(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        locks = " FOR UPDATE" in sql or " FOR NO KEY UPDATE" in sql
        if locks and not self.has_lock and "SKIP LOCKED" not in sql:  # that is the note of a token's use
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
    """Returns (result of the first, result of the second), or raises what one of them raised."""
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
    """Returns the actions' results, or the AppErrors they raised. Other exceptions are raised here."""
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


def in_thread(work: Work) -> Future[Any]:
    """Begins it, with a database connection of its own."""

    def run() -> Any:
        try:
            return work()
        finally:
            connection.close()

    return ThreadPoolExecutor(1).submit(run)
