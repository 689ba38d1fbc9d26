"""Counts the changes committed by all processes with this data directory, so that each knows at once of the others'.

The database's notifications arrive some milliseconds after a commit. Whoever changes something and reads it right
after, maybe from another worker, must not get an answer of before.

The count is the size of a file: appending a byte is atomic, and asking for the size costs less than a microsecond.
"""

import functools
import logging
import os
from contextlib import suppress

from django.conf import settings

from flagadmin.core.db.data_dir import give_to_owner_of

log = logging.getLogger("flagadmin.commits")

MAX_BYTES = 1_000_000  # above that, a server that starts begins anew


def mark() -> None:
    """Counts one. Called after the commit and before the response; never fails: the notification comes anyway."""
    try:
        os.write(_open_file(), b"\n")
    except OSError:
        log.exception("A change is not counted")


def count() -> int:
    """Another number than before if something has been committed since."""
    try:
        return os.fstat(_open_file()).st_size
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
