"""One transaction for all posts that arrive while the one before is being written.

A post is answered only after its own report is committed, so an answered one survives the death of this process.
Whichever thread gets to write takes everything that waits: the busier a worker, the larger its transactions, and
rows that many posts touch at once (the counts of a popular flag) are written once for all of them. While it is
crowded the writer waits a moment for more to come: fewer commits, more posts a second, and more of the machine left
to others. Nobody sits in front of an SDK's post.

Nobody waits for an import either. A report about a flag that somebody is changing is taken out of the transaction
and waits for that flag in its own thread; only some of a worker's threads may, and not for long. The others are
answered 503, and their SDKs send the report again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import BoundedSemaphore, Lock

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from flagadmin.db.transactions import LOCK_NOT_AVAILABLE, sqlstate
from flagadmin.errors import NotFound, ServiceUnavailable
from projects.applications.store_report import FlagsLocked, keep_report
from projects.applications.usage_report import Report

GATHERING = 0.01  # seconds
TRIES = 5
# How long a report waits for what somebody else has locked: with others, in front of others, by itself.
TOGETHER, IN_FRONT, ALONE = timedelta(seconds=0.5), timedelta(seconds=0.05), timedelta(seconds=3)
# Classes of PostgreSQL's errors that no report is the cause of: connection, resources, shutdown, system.
_OF_THE_DATABASE = ("08", "53", "57", "58")


@dataclass(slots=True, eq=False)
class _Entry:
    report: Report
    done: bool = False
    alone: bool = False
    error: Exception | None = None


class Inbox:
    def __init__(self) -> None:
        self._waiting: list[_Entry] = []
        self._adding = Lock()
        self._writing = Lock()
        self._alone = BoundedSemaphore(max(1, settings.SERVER_THREADS // 4))
        self._crowded = False

    def submit(self, report: Report, *, token: int = 0) -> None:
        """Returns once the report is committed; ``token`` is the id of the token it came with.

        Raises what stood against it, and against it alone.
        """
        entry = _Entry(report.told_by(token))
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
        if entry.alone:
            self._write_alone(report)
        if entry.error:
            raise entry.error

    def _write_waiting(self) -> None:
        if self._crowded:
            time.sleep(GATHERING)
        with self._adding:
            entries, self._waiting = self._waiting, []
        self._crowded = len(entries) > 1
        try:
            _write_together(entries)
        finally:
            for entry in entries:
                entry.done = True

    def _write_alone(self, report: Report) -> None:
        """Waits for the lock that it was set apart for, beside the others."""
        if not self._alone.acquire(blocking=False):
            raise ServiceUnavailable(_locked(report))
        try:
            _keep([report], lock_wait=ALONE)
        except OperationalError as error:
            if sqlstate(error) == LOCK_NOT_AVAILABLE:
                raise ServiceUnavailable(_locked(report)) from error
            raise
        finally:
            self._alone.release()


def _locked(report: Report) -> str:
    flags = sorted({use.flag for use in report.used})
    what = f"flags {', '.join(flags[:5])}{' and others' if len(flags) > 5 else ''}" if flags else "this"
    return f"The report was not stored: {what} cannot be written to at the moment. Send it again."


def _let_go() -> None:
    """The connection that the key was looked up with goes back to the pool: others can use it while this one waits."""
    if not connection.in_atomic_block:
        connection.close()


def _keep(reports: Sequence[Report], *, lock_wait: timedelta, skip_locked: bool = False) -> None:
    together = Report()
    for report in reports:
        together.add(report)
    for tries_left in reversed(range(TRIES)):
        try:
            keep_report(together, lock_wait=lock_wait, skip_locked=skip_locked)
            return
        except NotFound:  # a flag was deleted meanwhile: it is unknown now
            if not tries_left:
                raise


def _write_together(entries: Sequence[_Entry]) -> None:
    """In one transaction without those that have to wait for a flag."""
    while entries:
        try:
            _keep([entry.report for entry in entries], lock_wait=TOGETHER, skip_locked=True)
            return
        except FlagsLocked as error:
            for entry in entries:
                entry.alone = any(use.flag in error.flags for use in entry.report.used)
            entries = [entry for entry in entries if not entry.alone]
        except Exception as error:  # noqa: BLE001 - each waiting thread raises its own
            _write_each(entries, error)
            return


def _write_each(entries: Sequence[_Entry], error: Exception) -> None:
    """One bad report spoils no other, and one that has to wait keeps no other waiting."""
    if len(entries) == 1 or _is_of_the_database(error):
        _refuse(entries, error)
        return
    for position, entry in enumerate(entries):
        try:
            _keep([entry.report], lock_wait=IN_FRONT, skip_locked=True)
        except Exception as own_error:  # noqa: BLE001
            if _is_of_the_database(own_error):
                _refuse(entries[position:], own_error)
                return
            _refuse([entry], own_error)


def _refuse(entries: Sequence[_Entry], error: Exception) -> None:
    must_wait = isinstance(error, FlagsLocked) or sqlstate(error) == LOCK_NOT_AVAILABLE
    for entry in entries:
        entry.alone, entry.error = must_wait, None if must_wait else error


def _is_of_the_database(error: Exception) -> bool:
    """Whether the next report would meet the same: trying one by one would only keep everybody waiting."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = sqlstate(error)
    return state is None or state.startswith(_OF_THE_DATABASE)


inbox = Inbox()
