"""One transaction for all posts that arrive while the one before is being written.

A post is answered only after its own report is committed, so an answered one survives the death of this process.
Whichever thread gets to write takes everything that waits: the busier a worker, the larger its transactions, and
rows that many posts touch at once (the counts of a popular flag) are written once for all of them. While it is
crowded the writer waits a moment for more to come: fewer commits, more posts a second, and more of the machine left
to others. Nobody sits in front of an SDK's post.
"""

import time
from dataclasses import dataclass
from threading import Lock

from django.db import connection

from flagadmin.errors import NotFound
from projects.actions.report import Report
from projects.actions.usage import keep_report

GATHERING = 0.01  # seconds
TRIES = 5


@dataclass(slots=True, eq=False)
class _Entry:
    report: Report
    done: bool = False
    error: Exception | None = None


class Inbox:
    def __init__(self) -> None:
        self._waiting: list[_Entry] = []
        self._adding = Lock()
        self._writing = Lock()
        self._crowded = False

    def submit(self, report: Report) -> None:
        """Returns once the report is committed. Raises what stood against it, and against it alone."""
        entry = _Entry(report)
        with self._adding:
            self._waiting.append(entry)
        if not self._writing.acquire(blocking=False):
            _let_go()
            self._writing.acquire()
        try:
            if not entry.done:
                self._write_waiting()
        finally:
            self._writing.release()
        if entry.error:
            raise entry.error

    def _write_waiting(self) -> None:
        if self._crowded:
            time.sleep(GATHERING)
        with self._adding:
            entries, self._waiting = self._waiting, []
        self._crowded = len(entries) > 1
        try:
            _keep([entry.report for entry in entries])
        except Exception as error:  # noqa: BLE001 - each waiting thread raises its own
            _keep_each(entries, error)
        finally:
            for entry in entries:
                entry.done = True


def _let_go() -> None:
    """The connection that the key was looked up with goes back to the pool: others can use it while this one waits."""
    if not connection.in_atomic_block:
        connection.close()


def _keep(reports: list[Report]) -> None:
    together = Report()
    for report in reports:
        together.add(report)
    for tries_left in reversed(range(TRIES)):
        try:
            keep_report(together)
            return
        except NotFound:  # a flag was deleted meanwhile: it is unknown now
            if not tries_left:
                raise


def _keep_each(entries: list[_Entry], error: Exception) -> None:
    """One bad report spoils no other."""
    if len(entries) == 1:
        entries[0].error = error
        return
    for entry in entries:
        try:
            _keep([entry.report])
        except Exception as own_error:  # noqa: BLE001
            entry.error = own_error


inbox = Inbox()
