"""Writes the whole database to a file while servers are running, and counts the contents of databases and backups.

A backup is a pg_dump archive plus one line, which pg_restore ignores: the contents, the program that made it, and the
checksum of everything before. pg_dump's format has no checksum, so a damaged archive could be restored with wrong data.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import OperationalError, connection, transaction
from django.utils import timezone

from flagadmin import __version__
from flagadmin.core.db.backups.programs import (
    BackupError,
    check_bundled,
    check_installed,
    running,
    to_database,
)
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.db.transactions import LOCK_NOT_AVAILABLE, get_sqlstate

MARK = b"\nflagadmin backup: "
MAX_LINE_LENGTH = 1000
COUNTS = {
    "flags": "SELECT count(*) FROM public.projects_flag",
    "projects": "SELECT count(*) FROM public.projects_project",
    "people": "SELECT count(*) FROM public.groups_user WHERE NOT is_service",
    "events": "SELECT count(*) FROM public.audit_auditevent",
}


Contents = dict[str, int]
"""The numbers of rows by name, including archived flags and projects."""


def count_contents() -> Contents:
    numbers = fetch_row("SELECT " + ", ".join(f"({count})" for count in COUNTS.values()))
    return dict(zip(COUNTS, numbers, strict=True))


def describe(contents: Contents) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in contents.items())


def make_check_sql(contents: Contents) -> str:
    """SQL that fails if the contents of the database differ."""
    wrong = " OR ".join(f"({COUNTS[name]}) <> {number}" for name, number in contents.items())
    message = f"the backup is incomplete: it should hold {describe(contents)}"
    return f"DO $$ BEGIN IF {wrong} THEN RAISE EXCEPTION '{message}'; END IF; END $$;\n"


def write_label(path: Path, contents: Contents) -> None:
    """Completes an archive and waits until it is on the disk."""
    label = {
        "version": __version__,
        "at": timezone.now().isoformat(timespec="seconds"),
        "holds": contents,
        "sha256": _hash(path, path.stat().st_size),
    }
    with path.open("ab") as file:
        file.write(MARK + json.dumps(label).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_label(path: Path) -> dict[str, Any] | None:
    """``version``, ``at`` and ``holds``. None for backups made before 1.3 and for archives made with pg_dump itself.

    Raises BackupError if the file has changed since it was written.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_LINE_LENGTH))
        _, mark, line = file.read().rpartition(MARK)
    if not mark:
        return None
    with suppress(ValueError, KeyError, TypeError):
        label: dict[str, Any] = json.loads(line)
        if label["sha256"] == _hash(path, path.stat().st_size - len(mark + line)):
            return label
    raise BackupError(f"{path} is damaged: it has changed since it was written. Restore another backup.")


def _hash(path: Path, size: int) -> str:
    """The SHA-256 of the first ``size`` bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (part := file.read(min(size, io.DEFAULT_BUFFER_SIZE * 128))):
            digest.update(part)
            size -= len(part)
    return digest.hexdigest()


ARCHIVE = ("--no-owner", "--no-privileges")
DATED = "flagadmin-*Z.backup"
STALE_DRAFT = timedelta(days=1)
# Without a limit, a migration waiting for the counted tables and pg_dump waiting for the migration would deadlock.
MAX_LOCK_SECONDS = 20


def backup(path: Path) -> Contents:
    """Writes the database to ``path``, with mode 0600 as it contains password hashes. Raises BackupError."""
    check_bundled()
    check_installed()
    options = ("--format=custom", *ARCHIVE, f"--lock-wait-timeout={MAX_LOCK_SECONDS}s", to_database())
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.touch(mode=0o600)
    try:
        with (
            _snapshot() as (snapshot, contents),
            running("pg_dump", *options, f"--snapshot={snapshot}", f"--file={draft}"),
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
    """Removes all dated backups except the newest ``keep``, and the leftovers of killed backups."""
    for draft in folder.glob(f".{DATED}.*.part"):
        if datetime.now(UTC) - datetime.fromtimestamp(draft.stat().st_mtime, UTC) > STALE_DRAFT:
            draft.unlink()
    old = sorted(folder.glob(DATED))[:-keep]
    for path in old:
        path.unlink()
    return old


@contextmanager
def _snapshot() -> Iterator[tuple[str, Contents]]:
    """A snapshot of the database for pg_dump, and the contents of the database at that moment."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute(f"SET LOCAL lock_timeout = '{MAX_LOCK_SECONDS}s'")
        try:
            contents = count_contents()
        except OperationalError as error:
            if get_sqlstate(error) != LOCK_NOT_AVAILABLE:
                raise
            raise BackupError(
                f"A table has been locked for {MAX_LOCK_SECONDS} seconds, such as by a migration. Try again later."
            ) from error
        cursor.execute("SELECT pg_export_snapshot()")
        yield cursor.fetchone()[0], contents
