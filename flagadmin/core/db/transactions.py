"""Database transactions that are retried after conflicts, reads from one database snapshot, and large results.

PostgreSQL advisory locks can be held across several transactions: a separate connection holds the lock, in a
transaction. A session's lock would be lost behind a pooler in transaction mode (PgBouncer), which gives each
transaction another session. A killed process releases its locks.
"""

import random
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    IntegrityError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from flagadmin.core.errors import Conflict, NotFound

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS = 5
AUDITED = "flagadmin.audited"
"""A transaction-local setting: the transaction has recorded an audit event."""
DEADLOCK, SERIALIZATION_FAILURE, LOCK_NOT_AVAILABLE = "40P01", "40001", "55P03"
FOREIGN_KEY_VIOLATION, UNIQUE_VIOLATION = "23503", "23505"
UNDEFINED_TABLE, UNDEFINED_COLUMN = "42P01", "42703"


def get_sqlstate(exc: BaseException) -> str | None:
    """PostgreSQL's five-character error code for a Django database error, or None."""
    return getattr(exc.__cause__, "sqlstate", None)


def is_schema_incomplete(exc: BaseException) -> bool:
    """Whether a table or column is missing: another version set up the database, or its restore is incomplete."""
    return get_sqlstate(exc) in (UNDEFINED_TABLE, UNDEFINED_COLUMN)


class Action(dict[Hashable, Callable[[], None]]):
    """The running action of a connection: functions to call at its end."""

    depth = 0
    """The number of running actions inside it. -1: the next one makes its only change (`change_once`)."""
    events: list[Any] | None = None
    """Audit events to record later (`recording_together`), None to record them at once."""
    ignores_maintenance = False


def find_action() -> Action | None:
    return getattr(connection, "action", None)


End = TypeVar("End", bound=Callable[[], None])


def make_at_end_of_action(make: Callable[[], End]) -> End | None:
    """Returns the function made by ``make()`` in this action. It is called before the commit of the outermost action.

    Each action makes it once. An exception at the end undoes the action. Returns None outside an action.
    """
    action = find_action()
    if action is None:
        return None
    if make not in action:
        action[make] = make()
    return cast("End", action[make])


def is_whole_action() -> bool:
    """Whether no other action has called the running one, which may make further changes."""
    action = find_action()
    return action is not None and action.depth == 0


def change_once() -> None:
    """If the running action is a whole one, so is the next that it calls, which alone changes flags or segments."""
    if (action := find_action()) is not None and action.depth == 0:
        action.depth = -1


def transactional(action: Callable[P, R]) -> Callable[P, R]:
    """Runs ``action`` in one transaction and retries it on a deadlock or a serialization failure.

    Inside an open transaction, only the outermost caller can retry. A foreign key violation at commit raises NotFound,
    because a referenced row was deleted concurrently. A unique violation is retried too: the action's own check then
    finds the name in use and raises the error.
    """

    @wraps(action)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.in_atomic_block:
            return _to_its_end(action, *args, **kwargs)
        return run_with_retries(lambda: _to_its_end(action, *args, **kwargs))

    return run


def run_with_retries(work: Callable[[], R]) -> R:
    """Does the work in one transaction, and repeats it after a deadlock or a serialization failure.

    Actions within it end one by one, each with its checks.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic():
                return work()
        except OperationalError as exc:
            if get_sqlstate(exc) not in (DEADLOCK, SERIALIZATION_FAILURE) or attempt == ATTEMPTS:
                raise
            time.sleep(random.uniform(0.005, 0.02) * 2**attempt)
        except IntegrityError as exc:
            if get_sqlstate(exc) == FOREIGN_KEY_VIOLATION:
                raise NotFound("Something that this request refers to has just been deleted.") from exc
            if get_sqlstate(exc) != UNIQUE_VIOLATION:
                raise
            if attempt == ATTEMPTS:
                raise Conflict("Another request has just created the same. Try again.") from exc
    raise AssertionError("unreachable")


def _to_its_end(action: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    if (outer := find_action()) is not None:
        before = outer.depth
        outer.depth += 1
        try:
            return action(*args, **kwargs)
        finally:
            outer.depth = before if before >= 0 else 1
    running = Action()
    setattr(connection, "action", running)  # noqa: B010 - our own attribute
    try:
        result = action(*args, **kwargs)
        for end in running.values():
            end()
        return result
    finally:
        setattr(connection, "action", None)  # noqa: B010


def run_and_roll_back(work: Callable[[], R]) -> R:
    """Returns the result of the work and rolls it back: shows what an action would do."""
    with transaction.atomic():
        result = work()
        transaction.set_rollback(True)
    return result


@contextmanager
def consistent_reads(using: str = DEFAULT_DB_ALIAS, *, read_only: bool = True) -> Iterator[None]:
    """Reads everything from one database snapshot.

    Inside an open transaction, its isolation level applies.
    """
    with transaction.atomic(using):
        opened = connections[using]
        if not opened.savepoint_ids:
            with opened.cursor() as cursor:
                mode = ", READ ONLY" if read_only else ""
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ{mode}")
        yield


def stream_rows(rows: Any, chunk: int = 2_000) -> Iterator[Any]:
    """Yields a queryset's rows from a server-side cursor, ``chunk`` at a time, for results too large for memory.

    Uses a transaction, because a pooler would lose the cursor outside one.
    """
    with transaction.atomic(rows.db):
        yield from rows.iterator(chunk)


class Lock(IntEnum):
    """The keys. They only have to differ: other advisory locks use 5_172_031, 5_172_032 and 7_325_003."""

    MAINTENANCE = 7_325_001
    MIGRATION = 7_325_002
    USER_RUNS = 7_325_004
    LISTS = 7_325_005


@contextmanager
def hold(lock: Lock) -> Iterator[None]:
    """Waits for the lock and holds it until the end of the context. Raises django.db.OperationalError."""
    with _begin("SELECT pg_advisory_xact_lock(%s)", lock):
        yield


@contextmanager
def hold_if_free(lock: Lock) -> Iterator[bool]:
    """Yields whether the lock was free. If so, it is held until the end of the context."""
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
        with suppress(DatabaseError):  # the lock is gone with its connection
            holder.rollback()
        holder.close()
