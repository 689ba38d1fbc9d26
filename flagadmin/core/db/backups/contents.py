"""Counts the flags, projects, people and events in a database or a backup.

A backup is an archive of pg_dump with one more line, which pg_restore ignores: what it holds, who made it, and the
checksum of all before. pg_dump's format has none: what was damaged could be restored as something else.
"""

import hashlib
import io
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from django.utils import timezone

from flagadmin import __version__
from flagadmin.core.db.backups.errors import BackupError
from flagadmin.core.db.statements import fetch_row

MARK = b"\nflagadmin backup: "
MAX_LINE_LENGTH = 1000
COUNTS = {
    "flags": "SELECT count(*) FROM public.projects_flag",
    "projects": "SELECT count(*) FROM public.projects_project",
    "people": "SELECT count(*) FROM public.groups_user WHERE NOT is_service",
    "events": "SELECT count(*) FROM public.audit_auditevent",
}


@dataclass(frozen=True)
class Contents:
    """Archived flags and projects count too."""

    flags: int
    projects: int
    people: int
    events: int

    def __str__(self) -> str:
        return ", ".join(f"{name} {number:,}" for name, number in asdict(self).items())

    @classmethod
    def of_database(cls) -> Self:
        return cls(*fetch_row("SELECT " + ", ".join(f"({count})" for count in COUNTS.values())))

    def check_sql(self) -> str:
        """SQL that fails if the database holds anything else."""
        wrong = " OR ".join(f"({COUNTS[name]}) <> {number}" for name, number in asdict(self).items())
        message = f"the backup is incomplete: it should hold {self}"
        return f"DO $$ BEGIN IF {wrong} THEN RAISE EXCEPTION '{message}'; END IF; END $$;\n"


@dataclass(frozen=True)
class Label:
    """The last line of a backup."""

    made_by: str  # a version of flagadmin
    made_at: str
    contents: Contents

    def __str__(self) -> str:
        return f"{self.contents}. Made by flagadmin {self.made_by} at {self.made_at}"


def write_label(path: Path, contents: Contents) -> None:
    """Completes an archive, and waits until all of it is on the disk."""
    label = {
        "version": __version__,
        "at": timezone.now().isoformat(timespec="seconds"),
        "holds": asdict(contents),
        "sha256": _hash(path, path.stat().st_size),
    }
    with path.open("ab") as file:
        file.write(MARK + json.dumps(label).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_label(path: Path) -> Label | None:
    """None for backups of versions before 1.3, and archives that somebody made with pg_dump.

    Raises BackupError unless the file is as it was written.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_LINE_LENGTH))
        _, mark, line = file.read().rpartition(MARK)
    if not mark:
        return None
    try:
        label = json.loads(line)
        is_intact = label["sha256"] == _hash(path, path.stat().st_size - len(mark + line))
        made = Label(label["version"], label["at"], Contents(**label["holds"]))
    except (ValueError, KeyError, TypeError):
        is_intact = False
    if not is_intact:
        raise BackupError(f"{path} is damaged: it has changed since it was written. Restore another backup.")
    return made


def _hash(path: Path, size: int) -> str:
    """The SHA-256 of the first ``size`` bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (part := file.read(min(size, io.DEFAULT_BUFFER_SIZE * 128))):
            digest.update(part)
            size -= len(part)
    return digest.hexdigest()
