"""Counts the changes committed by all processes with this data directory, so that each notices those of the others.

The database's notifications arrive some milliseconds after a commit. A client that makes a change and reads it right
away, perhaps from another worker, must not get the old state.

The count is the size of a file: appending a byte is atomic, and seeking its end takes less than a microsecond.

Triggers notify the workers of a committed change (PostgreSQL's NOTIFY), so that none has to poll. A notification
carries no data and may be lost: listeners read the changes themselves.
"""

import functools
import logging
import os
from contextlib import suppress
from typing import Any

import pgtrigger
from django.conf import settings

from flagadmin.core.db.data_dir import give_to_owner_of

log = logging.getLogger("flagadmin.commits")

MAX_BYTES = 1_000_000  # above that, a server that starts empties the file


def mark() -> None:
    """Counts a commit. Called after it and before the response. Never fails: the notification comes anyway."""
    try:
        os.write(_open_file(), b"\n")
    except OSError:
        log.exception("A change is not counted")


def count() -> int:
    """A number that differs from an earlier one if something has been committed since."""
    try:
        return os.lseek(_open_file(), 0, os.SEEK_END)
    except OSError:
        return 0


def limit_size() -> None:
    with suppress(OSError):
        if count() > MAX_BYTES:
            os.ftruncate(_open_file(), 0)


@functools.cache
def _open_file() -> int:
    path = settings.DATA_DIR / "commits"
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    give_to_owner_of(path.parent, path)
    return opened


CHANNEL = "flagadmin_changes"


def notify_trigger(operation: Any) -> pgtrigger.Trigger:
    """Makes a trigger that notifies of each changed row. PostgreSQL merges equal notifications of a transaction."""
    return pgtrigger.Trigger(
        name="notify",
        level=pgtrigger.Row,
        when=pgtrigger.After,
        operation=operation,
        func=f"PERFORM pg_notify('{CHANNEL}', ''); RETURN NULL;",
    )
