"""Database transactions that are retried after conflicts, reads from one database snapshot, and large results."""

import random
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connection, connections, transaction

from flagadmin.core.errors import Conflict, NotFound

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS = 5
AUDITED = "flagadmin.audited"
"""The setting, local to a transaction, that says that it has recorded an audit event."""
DEADLOCK, SERIALIZATION_FAILURE, LOCK_NOT_AVAILABLE = "40P01", "40001", "55P03"
FOREIGN_KEY_VIOLATION, UNIQUE_VIOLATION = "23503", "23505"
UNDEFINED_TABLE, UNDEFINED_COLUMN = "42P01", "42703"


def get_sqlstate(exc: BaseException) -> str | None:
    """PostgreSQL's five-character error code for a Django database error, or None."""
    return getattr(exc.__cause__, "sqlstate", None)


def is_schema_incomplete(exc: BaseException) -> bool:
    """Whether a table or column is missing: another version set up the database, or a restore of it is not complete."""
    return get_sqlstate(exc) in (UNDEFINED_TABLE, UNDEFINED_COLUMN)


_ends: ContextVar[dict[Hashable, Callable[[], None]] | None] = ContextVar("ends", default=None)
"""Functions still to be called at the end of the action that this thread runs."""
End = TypeVar("End", bound=Callable[[], None])


def make_at_end_of_action(make: Callable[[], End]) -> End | None:
    """Returns the function made by ``make()`` in this action. It is called before the commit of the outermost one.

    It is made once in an action. An exception at the end undoes the action. None outside of an action.
    """
    ends = _ends.get()
    if ends is None:
        return None
    if make not in ends:
        ends[make] = make()
    return cast("End", ends[make])


def transactional(action: Callable[P, R]) -> Callable[P, R]:
    """Runs ``action`` in one transaction and retries it on a deadlock or a serialization failure.

    Inside an open transaction it is not retried: only the outermost caller can do that. A foreign key
    violation at commit raises NotFound, because a referenced row was deleted concurrently. A unique violation
    is retried too: the action's own check then finds the name in use and raises the error.
    """

    @wraps(action)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.in_atomic_block:
            return _to_its_end(action, *args, **kwargs)
        return run_with_retries(lambda: _to_its_end(action, *args, **kwargs))

    return run


def run_with_retries(work: Callable[[], R]) -> R:
    """Does the work in one transaction, again after a deadlock or a serialization failure.

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
    if _ends.get() is not None:
        return action(*args, **kwargs)
    ends: dict[Hashable, Callable[[], None]] = {}
    token = _ends.set(ends)
    try:
        result = action(*args, **kwargs)
        for end in ends.values():
            end()
        return result
    finally:
        _ends.reset(token)


def run_and_roll_back(work: Callable[[], R]) -> R:
    """Returns the result of the work, of which nothing stays in the database: shows what an action would do."""
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
    """The rows of a queryset with a cursor of the database, ``chunk`` at a time, for results too large for memory.

    In a transaction, outside of which a cursor would be lost behind a pooler.
    """
    with transaction.atomic(rows.db):
        yield from rows.iterator(chunk)
