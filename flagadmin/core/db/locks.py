"""PostgreSQL advisory locks that are held across several transactions.

A connection of its own holds the lock, in a transaction. A session's lock would be lost behind a pooler in
transaction mode (PgBouncer), which gives each transaction another session. A killed process releases its locks.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum

from django.db import DatabaseError, connection


class Lock(IntEnum):
    """The keys, which mean nothing but must differ: other advisory locks use 5_172_031, 5_172_032 and 7_325_003."""

    MAINTENANCE = 7_325_001
    MIGRATION = 7_325_002
    USER_RUNS = 7_325_004


@contextmanager
def hold(lock: Lock) -> Iterator[None]:
    """Waits for the lock and holds it until the end of the context. Raises django.db.OperationalError."""
    with _begin("SELECT pg_advisory_xact_lock(%s)", lock):
        yield


@contextmanager
def hold_if_free(lock: Lock) -> Iterator[bool]:
    """Whether the lock was free. If so, it is held until the end of the context."""
    with _begin("SELECT pg_try_advisory_xact_lock(%s)", lock) as (was_free,):
        yield was_free


@contextmanager
def _begin(statement: str, lock: Lock) -> Iterator[tuple[bool]]:
    holder = connection.copy()
    try:
        holder.set_autocommit(False)
        with holder.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute(statement, [lock])
            row = cursor.fetchone()
        yield row
    finally:
        with suppress(DatabaseError):  # the lock has gone with its connection
            holder.rollback()
        holder.close()
