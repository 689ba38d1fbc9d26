"""Writes the bundled database to a file while servers are running.

A backup is a pg_dump archive plus one line, which pg_restore ignores: the version that made it, the time, and the
checksum of everything before. pg_dump's format has no checksum, so a damaged archive could be restored with wrong data.
"""

import hashlib
import io
import json
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.utils import timezone

from flagadmin import __version__
from flagadmin.core.db.backups.programs import (
    BackupError,
    check_bundled,
    check_installed,
    running,
    to_database,
)

MARK = b"\nflagadmin backup: "
MAX_LINE_LENGTH = 1000


def write_label(path: Path) -> None:
    """Completes an archive and waits until it is on the disk."""
    label = {
        "version": __version__,
        "at": timezone.now().isoformat(timespec="seconds"),
        "sha256": _hash(path, path.stat().st_size),
    }
    with path.open("ab") as file:
        file.write(MARK + json.dumps(label).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_label(path: Path) -> dict[str, str] | None:
    """``version`` and ``at``. None for backups made before 1.3 and for archives made with pg_dump itself.

    Raises BackupError if the file has changed since it was written.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_LINE_LENGTH))
        _, mark, line = file.read().rpartition(MARK)
    if not mark:
        return None
    with suppress(ValueError, KeyError, TypeError):
        label = json.loads(line)
        if label["sha256"] == _hash(path, path.stat().st_size - len(mark + line)):
            return {name: str(label[name]) for name in ("version", "at")}
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
# A migration may lock a table for long.
MAX_LOCK_SECONDS = 20


def backup(path: Path) -> None:
    """Writes the database to ``path``, with mode 0600 as it contains password hashes. Raises BackupError."""
    check_bundled()
    check_installed()
    options = ("--format=custom", *ARCHIVE, f"--lock-wait-timeout={MAX_LOCK_SECONDS}s", to_database())
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.touch(mode=0o600)
    try:
        with running("pg_dump", *options, f"--file={draft}"):
            pass
        write_label(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


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
