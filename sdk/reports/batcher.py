"""Writes the usage reports of a worker in batches.

A request is answered only after its report is committed, so an acknowledged report survives a crash. The
thread that gets the lock writes all waiting reports in one transaction. The busier a worker, the larger its
transactions; rows updated by many reports (the counts of a popular flag) are written only once. Under load the writer
waits for BATCH_DELAY to collect more reports, which reduces the number of commits.

Batches do not wait for imports: a report about a locked flag is taken out of the batch and waits for that
flag in its own thread. Only some of a worker's threads may wait, and only briefly. Other requests get 503; most SDKs
then add the report to their next one.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import BoundedSemaphore, Lock

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone
from prometheus_client import Counter, Gauge

from flagadmin.core.db.standby import standby
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import LOCK_NOT_AVAILABLE, get_sqlstate, transactional
from flagadmin.core.errors import NotFound, ServiceUnavailable
from flagadmin.core.metrics import process_name, register_sampler
from projects.applications.store_report import FlagsLocked, store_report
from projects.applications.usage_report import UsageReport
from projects.models import CountedReport

BATCH_DELAY = 0.01  # seconds
TRIES = 5
# Lock timeouts of a report: in a batch, alone while the rest of its batch waits, and alone in its own thread.
TOGETHER, IN_FRONT, ALONE = timedelta(seconds=0.5), timedelta(seconds=0.05), timedelta(seconds=3)
# PostgreSQL error classes that no report can cause: connection, resources, operator intervention, system.
_OF_THE_DATABASE = ("08", "53", "57", "58")


REPORTS = Counter(
    "flagadmin_reports_total",
    "Usage reports: stored (accepted) or answered with an error (refused).",
    ["result"],
)
WAITING = Gauge(
    "flagadmin_reports_waiting", "Usage reports of a process that wait for the next batch.", ["process"]
)


@dataclass(slots=True, eq=False)
class _Entry:
    report: UsageReport
    done: bool = False
    alone: bool = False
    error: Exception | None = None


class ReportBatcher:
    def __init__(self) -> None:
        self._waiting: list[_Entry] = []
        self._adding = Lock()
        self._writing = Lock()
        self._alone = BoundedSemaphore(max(1, settings.SERVER_THREADS // 4))
        self._crowded = False

    def submit(self, report: UsageReport, *, token: int = 0) -> None:
        """Returns once the report is committed; ``token`` is the id of the report's token.

        Raises only errors of this report, not of others in the same batch.
        """
        try:
            self._submit(report, token)
        except Exception:
            REPORTS.labels("refused").inc()
            raise
        REPORTS.labels("accepted").inc()

    @property
    def waiting(self) -> int:
        """The number of reports that wait for the next batch."""
        return len(self._waiting)

    def _submit(self, report: UsageReport, token: int) -> None:
        entry = _Entry(report.with_token(token))
        with self._adding:
            self._waiting.append(entry)
        if not self._writing.acquire(blocking=False):
            _release_connection()
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
            time.sleep(BATCH_DELAY)
        with self._adding:
            entries, self._waiting = self._waiting, []
        self._crowded = len(entries) > 1
        try:
            _write_together(entries)
        finally:
            for entry in entries:
                entry.done = True

    def _write_alone(self, report: UsageReport) -> None:
        """Waits for the locked flags, without holding up other reports."""
        if not self._alone.acquire(blocking=False):
            raise ServiceUnavailable(_locked(report))
        try:
            _store([report], lock_wait=ALONE)
        except OperationalError as error:
            if get_sqlstate(error) == LOCK_NOT_AVAILABLE:
                raise ServiceUnavailable(_locked(report)) from error
            raise
        finally:
            self._alone.release()


def _locked(report: UsageReport) -> str:
    flags = sorted({use.flag for use in report.used})
    names = f"{', '.join(flags[:5])}{' and others' if len(flags) > 5 else ''}"
    what = f"one of its flags ({names})" if flags else "its data"
    cause = ", or an earlier report waits for the standby of the database" if standby.is_required else ""
    return f"The report was not stored because {what} is being changed{cause}. Send it again."


def _release_connection() -> None:
    """Returns the connection of the token lookup to the pool while this thread waits."""
    if not connection.in_atomic_block:
        connection.close()


def _store(reports: Sequence[UsageReport], *, lock_wait: timedelta, skip_locked: bool = False) -> None:
    together = UsageReport()
    for report in reports:
        together.add(report)
    for tries_left in reversed(range(TRIES)):
        try:
            store_report(together, lock_wait=lock_wait, skip_locked=skip_locked)
            return
        except NotFound:  # a flag was deleted in the meantime and is now unknown
            if not tries_left:
                raise


def _write_together(entries: Sequence[_Entry]) -> None:
    """Writes the reports in one transaction, except those that must wait for a locked flag."""
    while entries:
        try:
            _store([entry.report for entry in entries], lock_wait=TOGETHER, skip_locked=True)
            return
        except FlagsLocked as error:
            for entry in entries:
                entry.alone = any(use.flag in error.flags for use in entry.report.used)
            entries = [entry for entry in entries if not entry.alone]
        except Exception as error:  # noqa: BLE001 - each waiting thread raises its own
            _write_each(entries, error)
            return


def _write_each(entries: Sequence[_Entry], error: Exception) -> None:
    """Writes each report in its own transaction, so that a failing or waiting one does not affect others."""
    if len(entries) == 1 or _is_of_the_database(error):
        _refuse(entries, error)
        return
    for position, entry in enumerate(entries):
        try:
            _store([entry.report], lock_wait=IN_FRONT, skip_locked=True)
        except Exception as own_error:  # noqa: BLE001
            if _is_of_the_database(own_error):
                _refuse(entries[position:], own_error)
                return
            _refuse([entry], own_error)


def _refuse(entries: Sequence[_Entry], error: Exception) -> None:
    must_wait = isinstance(error, FlagsLocked) or get_sqlstate(error) == LOCK_NOT_AVAILABLE
    for entry in entries:
        entry.alone, entry.error = must_wait, None if must_wait else error


def _is_of_the_database(error: Exception) -> bool:
    """Whether the database itself failed, so that other reports would fail in the same way."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = get_sqlstate(error)
    return state is None or state.startswith(_OF_THE_DATABASE)


report_batcher = ReportBatcher()


@register_sampler
def _sample() -> None:
    WAITING.labels(process_name()).set(report_batcher.waiting)


ID_HEADER = "Flagadmin-Report-Id"
KEPT = timedelta(days=30)

_NOTE = "INSERT INTO projects_countedreport (digest) VALUES (%s) ON CONFLICT DO NOTHING"


@transactional
def count_once(report: UsageReport, identifier: str, *, token: int) -> None:
    """Stores the report unless one with this id and token id has been stored."""
    digest = hashlib.sha256(f"{token} {identifier}".encode()).hexdigest()
    is_new = execute(_NOTE, [digest]) == 1
    if is_new:
        store_report(report.with_token(token), lock_wait=ALONE)
        REPORTS.labels("accepted").inc()


def forget_reports() -> None:
    CountedReport.objects.filter(counted_at__lt=timezone.now() - KEPT).delete()
