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
from typing import IO

from django.conf import settings
from django.db import connection, transaction

import flagadmin
from flagadmin.core.db.backups.backup import ARCHIVE, Label, read_label
from flagadmin.core.db.backups.programs import (
    BackupError,
    check_direct,
    check_not_foreign,
    find_program,
    make_connection_arguments,
    running,
)
from flagadmin.core.db.migrate import find_newer_migrations
from flagadmin.core.db.statements import fetch_row, fetch_rows
from flagadmin.core.db.transactions import AUDITED

MAGIC = b"PGDMP"
_APPLIED = re.compile(r"^\d+\t([\w.]+)\t(\w+)\t", re.MULTILINE)
_SETTING = re.compile(rb"SET (\w+) = ")
_FIRST_OBJECT = b"-- Name: "
# SDKs may have seen revisions later than the backup's, from the lost database. A restore skips this many so that it
# never reuses one: an SDK would believe that it has the latest flags. SDKs read revisions as 32-bit integers.
LEFT_OUT_REVISIONS = 1_000_000

# Runs before a restore: drops all objects except those of extensions.
_CLEAR = """
DO $$
DECLARE it record;
BEGIN
    FOR it IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
               WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
                 AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') LOOP
        EXECUTE format('DROP %s IF EXISTS %s CASCADE', CASE it.relkind
            WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, it.name);
    END LOOP;
    FOR it IN SELECT c.oid::regclass AS name FROM pg_class c
               WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S'
                 AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') LOOP
        EXECUTE format('DROP SEQUENCE IF EXISTS %s CASCADE', it.name);
    END LOOP;
    FOR it IN SELECT p.oid::regprocedure AS name FROM pg_proc p
               WHERE p.pronamespace = 'public'::regnamespace AND p.prokind IN ('f', 'p')
                 AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') LOOP
        EXECUTE format('DROP ROUTINE IF EXISTS %s CASCADE', it.name);
    END LOOP;
END $$;
"""
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
    label = check_archive(path)
    check_direct()
    check_not_foreign()
    settings, last = {name for (name,) in fetch_rows("SELECT name FROM pg_settings")}, _read_last_revision()
    psql = [
        find_program("psql"),
        "--quiet",
        "--no-psqlrc",
        "--single-transaction",
        "--set=ON_ERROR_STOP=1",
        "--file=-",
    ]
    pg_restore = _make_pg_restore_command(path)
    to_database, password = make_connection_arguments()
    with running([*psql, *to_database], password, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as target:
        _write(target, _CLEAR)
        with running(pg_restore, stdout=subprocess.PIPE) as source:
            assert source.stdout
            assert target.stdin
            _copy_statements(source.stdout, target.stdin, settings)
        _write(target, (label.contents.check_sql() if label else "") + _renew_sql(last))


def renew_revisions() -> None:
    """Makes SDKs and running servers discard their copies after a recovery with PostgreSQL's own tools."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_renew_sql(1))


def check_archive(path: Path) -> Label | None:
    """Reads the label of the backup.

    Raises BackupError if it is not a backup of flagadmin, is damaged, or was made by a newer version.
    """
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
    command = _make_pg_restore_command(path, "--data-only", "--table=django_migrations")
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        return process.stdout.read().decode(errors="replace")


def _make_pg_restore_command(path: Path, *options: str) -> list[str]:
    return [find_program("pg_restore"), *ARCHIVE, *options, "--file=-", str(path)]


def _copy_statements(source: IO[bytes], target: IO[bytes], settings: set[str]) -> None:
    """Copies the statements except for initial settings that an older server does not know, such as
    transaction_timeout.
    """
    for line in source:
        setting = _SETTING.match(line)
        if setting is None or setting[1].decode() in settings:
            target.write(line)
        if line.startswith(_FIRST_OBJECT):
            break
    shutil.copyfileobj(source, target, 1_000_000)


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
    """This process's environment and keys, with a separate database and data directory."""
    other = {"DATABASE_URL", "DATABASE_REPLICA_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in other}
    key = settings.SECRET_KEY if isinstance(settings.SECRET_KEY, str) else settings.SECRET_KEY.decode()
    scratch = {"FLAGADMIN_DATA_DIR": folder, "FLAGADMIN_DATABASE_DURABLE": "0", "SECRET_KEY": key}
    return environment | scratch
