"""How far a large import is, told on a connection of its own while the import's transaction is open."""

from typing import Protocol
from uuid import UUID

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper


class Watcher(Protocol):
    """Whoever wants to know how far it is: a row in the database, a bar on a terminal, nobody."""

    def total(self, count: int) -> None:
        """How many flags will be written."""

    def step(self, name: str, done: int) -> None:
        """``done`` flags have their part ``name``."""


class Silent:
    def total(self, count: int) -> None:
        pass

    def step(self, name: str, done: int) -> None:
        pass


class RunProgress:
    """Writes to a run that is committed already, so that a page can ask for it. Use as a context manager."""

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
                f"UPDATE importer_importrun SET {assignments} WHERE id = %s",  # noqa: S608 - our own words
                [*values, self.run_id],
            )


def hold(run_id: UUID) -> None:
    """Until the end of the transaction, whoever asks :func:`is_held` learns that the run is at work.

    A lock that dies with its connection: a killed import does not look as if it went on.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [str(run_id)])


def is_held(run_id: UUID) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock_shared(hashtextextended(%s, 0))", [str(run_id)])
        [free] = cursor.fetchone()
        if free:
            cursor.execute("SELECT pg_advisory_unlock_shared(hashtextextended(%s, 0))", [str(run_id)])
    return not free
