"""Replaces the whole database with a backup, in one transaction, so that a failed restore changes nothing.

A backup is checked by restoring it to a scratch database, which is removed afterwards.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

import flagadmin
from flagadmin.core.db.backups.backup import ARCHIVE, read_label
from flagadmin.core.db.backups.programs import BackupError, check_bundled, running, to_database
from flagadmin.core.db.migrate import find_newer_migrations
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.db.transactions import AUDITED

MAGIC = b"PGDMP"
_APPLIED = re.compile(r"^\d+\t([\w.]+)\t(\w+)\t", re.MULTILINE)
# SDKs may have seen revisions later than the backup's, from the lost database. A restore skips this many so that it
# never reuses one: an SDK would believe that it has the latest flags. SDKs read revisions as 32-bit integers.
LEFT_OUT_REVISIONS = 1_000_000

_CLEAR = "DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner;\n"
# Runs after a restore: gives every project a new revision, so that SDKs and running servers discard their copies.
# The events in the backup record how its flags reached their state. Backups have no statistics.
_RENEW = """
SET LOCAL {audited} = 'on';
SELECT setval('public.projects_revision_seq', {left_out} + greatest(
    {last}, (SELECT last_value FROM public.projects_revision_seq)));
UPDATE public.projects_projectrevision SET revision = nextval('public.projects_revision_seq');
ANALYZE;
"""


def restore(path: Path) -> None:
    """Replaces everything in the database with the backup in ``path``. Raises BackupError."""
    check_archive(path)
    last = _read_last_revision()
    psql = (
        "--quiet",
        "--no-psqlrc",
        "--single-transaction",
        "--set=ON_ERROR_STOP=1",
        "--file=-",
        to_database(),
    )
    with running("psql", *psql, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as target:
        _write(target, _CLEAR)
        with running("pg_restore", *ARCHIVE, "--file=-", str(path), stdout=subprocess.PIPE) as source:
            assert source.stdout
            assert target.stdin
            shutil.copyfileobj(source.stdout, target.stdin, 1_000_000)
        _write(target, _renew_sql(last))


def renew_revisions() -> None:
    """Makes SDKs and running servers discard their copies after a recovery with PostgreSQL's own tools."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_renew_sql(1))


def check_archive(path: Path) -> dict[str, str] | None:
    """Reads the label of the backup.

    Raises BackupError if it is not a backup of flagadmin, is damaged, or was made by a newer version.
    """
    check_bundled()
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise BackupError(f"{path} is not a backup made by `flagadmin backup`.")
    label = read_label(path)
    applied = set(_APPLIED.findall(_read_migrations(path)))
    if not any(app == "projects" for app, _ in applied):
        raise BackupError(f"{path} is a backup of another application: it contains no flags.")
    if newer := find_newer_migrations(applied):
        raise BackupError(
            f"{path} was made by a newer version of flagadmin (it has {', '.join(newer)}). Update first."
        )
    return label


def _read_migrations(path: Path) -> str:
    options = ("--data-only", "--table=django_migrations", "--file=-", str(path))
    with running("pg_restore", *options, stdout=subprocess.PIPE) as process:
        assert process.stdout
        return process.stdout.read().decode(errors="replace")


def _read_last_revision() -> int:
    if not fetch_row("SELECT to_regclass('projects_revision_seq') IS NOT NULL")[0]:
        return 1
    return int(fetch_row("SELECT last_value FROM projects_revision_seq")[0])


def _renew_sql(last: int) -> str:
    return _RENEW.format(last=last, audited=AUDITED, left_out=LEFT_OUT_REVISIONS)


def _write(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin
    process.stdin.write(text.encode())


def check_backup(path: Path) -> str:
    """Runs `restore` as an operator would, on a separate bundled server. Returns its output.

    Raises BackupError.
    """
    with tempfile.TemporaryDirectory(prefix="flagadmin-check-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "flagadmin", "restore", str(path.resolve())],
            cwd=Path(flagadmin.__file__).parents[1],
            env=_make_environment(folder),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise BackupError(f"{path} cannot be restored: {done.stderr.strip()}")
    output = " ".join(f"{done.stdout} {done.stderr}".split())
    return f"Checked in a scratch database, which has been removed: {output}"


def _make_environment(folder: str) -> dict[str, str]:
    """This process's environment and keys, with a separate data directory."""
    key = settings.SECRET_KEY if isinstance(settings.SECRET_KEY, str) else settings.SECRET_KEY.decode()
    scratch = {"FLAGADMIN_DATA_DIR": folder, "FLAGADMIN_DATABASE_DURABLE": "0", "SECRET_KEY": key}
    return os.environ | scratch
