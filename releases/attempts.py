"""Attempts changes for background tasks of releases, and handles those that are currently impossible."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from flagadmin.core.change_checks import Refusal
from flagadmin.core.db.statements import execute, fetch_rows
from flagadmin.core.db.transactions import LOCK_NOT_AVAILABLE, get_sqlstate, is_schema_incomplete
from flagadmin.core.errors import AppError, MaintenanceMode
from flagadmin.core.installation.state import check_writable

log = logging.getLogger("flagadmin.releases")

LOCK_WAIT = "1s"
AT_ONCE = 200
SOON = timedelta(seconds=1)
"""The delay before a change blocked by another one is retried."""
# ARRAY runs the query once. PostgreSQL may run that of an IN again for each row, and claim more than the limit.
_CLAIM = """
UPDATE {table} SET look_at = %s WHERE id = ANY(ARRAY(
       SELECT id FROM {table} WHERE {condition} AND look_at <= %s
        ORDER BY look_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)) RETURNING id
"""


def claim_due(table: str, look_every: timedelta, condition: str = "true") -> Iterator[list[str]]:
    """Yields the ids of due rows, some at a time, and keeps other servers from looking at them soon.

    It ends: rows that become due in the meantime, even yielded ones, are left for the next time.
    """
    claim = _CLAIM.format(table=table, condition=condition)
    keys, begun = [""] * AT_ONCE, timezone.now()
    while len(keys) == AT_ONCE:
        keys = [key for (key,) in fetch_rows(claim, [timezone.now() + look_every, begun, AT_ONCE])]
        if keys:
            yield keys


class Attempts:
    """The attempts of one look. It waits once for a project that another change blocks, and skips the rest of it."""

    def __init__(self) -> None:
        self.projects_held_up: set[str] = set()
        self.left: list[Any] = []
        """The keys left for the next look."""

    def attempt(
        self, key: Any, project: str, act: Callable[[], None], note_failure: Callable[[str], None]
    ) -> None:
        """Raises the same errors as `attempt`."""
        if project in self.projects_held_up or not attempt(act, note_failure):
            self.projects_held_up.add(project)
            self.left.append(key)


def attempt(act: Callable[[], None], note_failure: Callable[[str], None]) -> bool:
    """Records a failure with its reason. Returns false if another change blocks it.

    Raises MaintenanceMode, and the errors of a database that is absent or lacks tables.
    """
    try:
        try:
            act()
        except MaintenanceMode:
            raise
        except (AppError, Refusal) as error:
            note_failure(error.message)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            if is_schema_incomplete(error):
                raise
            log.exception("A background task of releases failed")
            note_failure("An error that is described in the server's log.")
    except OperationalError as error:
        if get_sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        return False
    return True


def wait_briefly_for_locks() -> None:
    """Limits the wait for locks in this transaction. Raises MaintenanceMode."""
    check_writable()
    execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_WAIT])


@contextmanager
def waiting_for_database(what: str, outage: threading.Event) -> Iterator[None]:
    """Ends the work while the database is away, which is logged once, and in maintenance mode."""
    try:
        yield
    except MaintenanceMode:
        pass
    except (OperationalError, InterfaceError) as error:
        if not outage.is_set():
            log.warning("%s wait for the database: %s", what, error)
        outage.set()
    else:
        outage.clear()
