"""Writes the whole database to a file, while servers go on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.db import OperationalError, connection, transaction

from flagadmin.core.db.backups.contents import Contents, write_label
from flagadmin.core.db.backups.database import check_direct, check_installed
from flagadmin.core.db.backups.errors import BackupError
from flagadmin.core.db.backups.programs import find_program, make_connection_arguments, running
from flagadmin.core.db.transactions import LOCK_NOT_AVAILABLE, get_sqlstate

ARCHIVE = ("--no-owner", "--no-privileges")
DATED = "flagadmin-*Z.backup"
STALE_DRAFT = timedelta(days=1)
# A migration that waits for the tables which are being counted, and which pg_dump then waits for, would never end.
MAX_LOCK_SECONDS = 20


def backup(path: Path) -> Contents:
    """Writes the database to ``path``, with mode 0600 as it contains password hashes. Raises BackupError."""
    check_direct()
    check_installed()
    command = [
        find_program("pg_dump"),
        "--format=custom",
        *ARCHIVE,
        f"--lock-wait-timeout={MAX_LOCK_SECONDS}s",
    ]
    to_database, password = make_connection_arguments()
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.touch(mode=0o600)
    try:
        with (
            _snapshot() as (snapshot, contents),
            running([*command, f"--snapshot={snapshot}", f"--file={draft}", *to_database], password),
        ):
            pass
        write_label(draft, contents)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return contents


def make_dated_path(folder: Path) -> Path:
    return folder / f"flagadmin-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"


def remove_old_backups(folder: Path, *, keep: int) -> list[Path]:
    """Removes all dated backups but the newest ``keep``, and what backups that were killed have left behind."""
    for draft in folder.glob(f".{DATED}.*.part"):
        if datetime.now(UTC) - datetime.fromtimestamp(draft.stat().st_mtime, UTC) > STALE_DRAFT:
            draft.unlink()
    old = sorted(folder.glob(DATED))[:-keep]
    for path in old:
        path.unlink()
    return old


@contextmanager
def _snapshot() -> Iterator[tuple[str, Contents]]:
    """A snapshot of the database for pg_dump, and what the database holds at that moment."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute(f"SET LOCAL lock_timeout = '{MAX_LOCK_SECONDS}s'")
        try:
            contents = Contents.of_database()
        except OperationalError as error:
            if get_sqlstate(error) != LOCK_NOT_AVAILABLE:
                raise
            raise BackupError(
                f"A table has been locked for {MAX_LOCK_SECONDS} seconds, such as by a migration. Try again later."
            ) from error
        cursor.execute("SELECT pg_export_snapshot()")
        yield cursor.fetchone()[0], contents
