"""Reports the progress of a large import on a separate connection while its transaction is open."""

from typing import Protocol
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


class ProgressReporter(Protocol):
    """Shows progress: in the database, on a terminal, or nowhere."""

    def total(self, count: int) -> None:
        """Sets the number of flags to write."""

    def step(self, name: str, done: int) -> None:
        """Reports that the step ``name`` is complete for ``done`` flags."""


class NoProgress:
    def total(self, count: int) -> None:
        pass

    def step(self, name: str, done: int) -> None:
        pass


class RunProgress:
    """Writes progress to a committed run, where a page reads it. A context manager."""

    def __init__(self, run_id: UUID) -> None:
        self.run_id = run_id
        self.connection: BaseDatabaseWrapper | None = None

    def __enter__(self) -> "RunProgress":
        self.connection = connection.copy()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.connection is not None:
            self.connection.close()

    def total(self, count: int) -> None:
        self._set("state = 'running', progress_total = %s, progress_done = 0, step = ''", count)

    def step(self, name: str, done: int) -> None:
        self._set("step = %s, progress_done = %s", name, done)

    def _set(self, assignments: str, *values: str | int) -> None:
        assert self.connection is not None
        with self.connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE importer_importrun SET {assignments} WHERE id = %s",  # noqa: S608 - no user input
                [*values, self.run_id],
            )


def mark_running(run_id: UUID) -> None:
    """Makes :func:`is_running` true until the end of the transaction.

    The lock is released with its connection, so a killed import does not appear to be running.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [str(run_id)])


def is_running(run_id: UUID) -> bool:
    # In a transaction, because only its locks work behind a pooler.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%s, 0))", [str(run_id)])
        [free] = cursor.fetchone()
    return not free
