"""Backs up and restores the whole database with pg_dump, pg_restore and psql.

A bundled server is backed up with its own tools, a server given by DATABASE_URL with those on the PATH. psql
restores everything in one transaction, so a failed restore changes nothing.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection

from flagadmin.db.transactions import AUDITED
from flagadmin.db.versions import newer_migrations

MAGIC = b"PGDMP"
ARCHIVE = ("--no-owner", "--no-privileges")
_APPLIED = re.compile(r"^\d+\t([\w.]+)\t(\w+)\t", re.MULTILINE)

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
# Runs after a restore: gives every project a new revision, so that no running server uses a cached snapshot.
# The events of the backup tell how its flags became what they are. Backups have no statistics.
_RENEW = """
SET LOCAL {audited} = 'on';
SELECT setval('public.projects_revision_seq', greatest(
    {last}, (SELECT last_value FROM public.projects_revision_seq)));
UPDATE public.projects_projectrevision SET revision = nextval('public.projects_revision_seq');
ANALYZE;
"""


class BackupError(Exception):
    """A backup or restore failed. The message says what is wrong and what to do."""


def backup(path: Path) -> None:
    """Writes the database to ``path``, with mode 0600 as it contains password hashes. Raises BackupError."""
    _check_direct()
    program = tool("pg_dump")
    _check_version(program)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.touch(mode=0o600)
    try:
        _run([program, "--format=custom", *ARCHIVE, f"--file={draft}"])
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def restore(path: Path) -> None:
    """Replaces everything in the database with the backup in ``path``. Raises BackupError."""
    check_archive(path)
    _check_direct()
    last = _last_revision()
    script = [_CLEAR.encode(), _sql_of(path), _RENEW.format(last=last, audited=AUDITED).encode()]
    connection.close()
    _run(
        [tool("psql"), "--quiet", "--no-psqlrc", "--single-transaction", "--set=ON_ERROR_STOP=1", "--file=-"],
        text=b"\n".join(script),
    )


def check_archive(path: Path) -> None:
    """Raises BackupError if the file is not a backup of flagadmin, or one of a newer version."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise BackupError(f"{path} is not a backup made by `manage.py backup`.")
    listed = _sql_of(path, "--data-only", "--table=django_migrations").decode(errors="replace")
    applied = set(_APPLIED.findall(listed))
    if not any(app == "projects" for app, _ in applied):
        raise BackupError(f"{path} is a backup of another application: it contains no flags.")
    if newer := newer_migrations(applied):
        raise BackupError(
            f"{path} was made by a newer version of flagadmin (it has {', '.join(newer)}). Update first."
        )


def holds_data() -> bool:
    """Whether the database has ever been used: every change creates an audit event."""
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        for table in ("audit_auditevent", "groups_user", "projects_flag"):
            if table in tables:
                cursor.execute(f"SELECT EXISTS (SELECT FROM {table})")  # noqa: S608 - constant names
                if cursor.fetchone()[0]:
                    return True
    return False


def tool(name: str) -> str:
    """The path of one of PostgreSQL's programs. Raises BackupError."""
    if is_bundled():
        from flagadmin.db.bundled.binaries import tool_path

        return str(tool_path(name))
    found = shutil.which(name)
    if found is None:
        raise BackupError(
            f"{name} is not installed. Install PostgreSQL's client programs "
            f"(on Debian: apt-get install postgresql-client), version {server_version()} or newer."
        )
    return found


def is_bundled() -> bool:
    return bool(settings.DATABASES["default"]["ENGINE"] == "flagadmin.db.bundled")


def server_version() -> int:
    connection.ensure_connection()
    return int(connection.pg_version) // 10000  # type: ignore[attr-defined]


def _check_version(program: str) -> None:
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    major = int(re.search(r"(?<!\d)(\d+)[.\s]", shown + "\n")[1])  # type: ignore[index]
    if major < server_version():
        raise BackupError(
            f"{program} is version {major} and cannot back up a server of version {server_version()}. "
            f"Install PostgreSQL's client programs {server_version()}."
        )


def _check_direct() -> None:
    """Raises BackupError behind a pooler: settings that PostgreSQL's programs make would stay for other sessions."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        # A pooler tells its clients process ids of its own.
        if cursor.fetchone()[0] != connection.connection.info.backend_pid:
            raise BackupError(
                "DATABASE_URL leads to a connection pooler. For backups, give the URL of PostgreSQL itself."
            )


def _last_revision() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('projects_revision_seq') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return 1
        cursor.execute("SELECT last_value FROM projects_revision_seq")
        return int(cursor.fetchone()[0])


def _sql_of(path: Path, *options: str) -> bytes:
    done = subprocess.run(
        [tool("pg_restore"), *ARCHIVE, *options, "--file=-", str(path)], capture_output=True, check=False
    )
    if done.returncode:
        raise BackupError(f"Cannot read {path}: {_said(done.stderr)}")
    return done.stdout


def _run(command: list[str], *, text: bytes | None = None) -> None:
    """Runs a client program on the default database, with the password in its environment."""
    connection.ensure_connection()
    info = connection.connection.info
    environment = os.environ | ({"PGPASSWORD": info.password} if info.password else {})
    command = [*command, f"--dbname={info.dsn}"]
    connection.close()
    done = subprocess.run(command, input=text, capture_output=True, env=environment, check=False)
    if done.returncode:
        raise BackupError(f"{Path(command[0]).name} failed. Nothing was changed: {_said(done.stderr)}")


def _said(output: bytes) -> str:
    """The last lines of a program's error output."""
    return " ".join(_lines(output.decode(errors="replace")))[-1000:] or "it gave no reason."


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines()[-5:] if line.strip())
