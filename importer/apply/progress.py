"""Reports the progress of a large import on a separate connection while its transaction is open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection, transaction

from flagadmin.core.db.statements import execute

Progress = Callable[[str, int, int], None]
"""Called after each step with its name, the number of flags done, and of all; first called before any step."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """For imports without a viewer."""


@contextmanager
def write_progress(run_id: UUID) -> Iterator[Progress]:
    """Writes progress to a committed run, from which a page reads it."""
    own = connection.copy()

    def write(step: str, done: int, total: int) -> None:
        with own.cursor() as cursor:
            cursor.execute(
                "UPDATE importer_importrun SET state = 'running', step = %s, progress_done = %s, progress_total = %s"
                " WHERE id = %s",
                [step, done, total, run_id],
            )

    try:
        yield write
    finally:
        own.close()


def mark_running(run_id: UUID) -> None:
    """Makes :func:`is_running` true until the end of the transaction.

    The lock is released with its connection, so a killed import does not appear to be running.
    """
    execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [str(run_id)])


def is_running(run_id: UUID) -> bool:
    # In a transaction, because only its locks work behind a pooler.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%s, 0))", [str(run_id)])
        [free] = cursor.fetchone()
    return not free
