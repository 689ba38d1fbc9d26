"""Runs PostgreSQL's pg_dump, pg_restore and psql on the default database.

The bundled programs work with servers of their own version and all earlier ones, so nothing has to be installed. The
programs on the PATH are used for newer servers, and for servers of DATABASE_URL on systems other than Linux.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import IO, Any

import psycopg
from django.conf import settings
from django.db import connection

from flagadmin.core.db.bundled.programs import MAJOR_VERSION, find_tool
from flagadmin.core.db.statements import fetch_row

BUNDLED_VERSION = int(MAJOR_VERSION)
MAX_LINE_LENGTH = 300  # of an error; it may quote a very long statement
NO_TRANSACTION = "there is no transaction in progress"  # psql's warning at the end of --single-transaction


def is_bundled() -> bool:
    return bool(settings.DATABASES["default"]["ENGINE"] == "flagadmin.core.db.bundled")


def read_server_version() -> int:
    connection.ensure_connection()
    return int(connection.pg_version) // 10000  # type: ignore[attr-defined]


def find_program(name: str) -> str:
    """The path of a program that works with the server of the database. Raises BackupError."""
    if is_bundled() or (sys.platform == "linux" and read_server_version() <= BUNDLED_VERSION):
        return str(find_tool(name))
    path = shutil.which(name)
    if path is None:
        raise BackupError(
            f"{name} is not installed. Install PostgreSQL's client programs, version {read_server_version()} or newer."
        )
    _check_version(path)
    return path


def describe_program(path: str) -> str:
    """Such as ``pg_dump (PostgreSQL) 18.4, bundled``."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    origin = "bundled" if path == str(find_tool(Path(path).name)) else path
    return f"{done.stdout.strip()}, {origin}"


def make_connection_arguments() -> tuple[list[str], dict[str, str]]:
    """The arguments with which a program connects to the database, and the environment with the password."""
    connection.ensure_connection()
    info = connection.connection.info
    arguments, password = [f"--dbname={info.dsn}"], info.password
    connection.close()  # a restore drops tables that its transaction may have read
    return arguments, {"PGPASSWORD": password} if password else {}


@contextmanager
def running(
    command: list[str], variables: dict[str, str] | None = None, **streams: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program until the end of the context. Kills it if the context raises.

    Raises BackupError if the program fails, even if the context then could not write all of its input.
    """
    environment = os.environ | _preload_libpq(command[0]) | (variables or {})
    with (
        tempfile.TemporaryFile() as errors,  # a pipe could fill up
        subprocess.Popen(command, env=environment, stderr=errors, **streams) as process,
    ):
        try:
            yield process
        except BaseException as error:
            if not (isinstance(error, BrokenPipeError) and process.stdin):
                process.kill()
                raise
        finally:
            if process.stdin:
                with suppress(BrokenPipeError):
                    process.stdin.close()
        if process.wait():
            reason = _find_reason(errors)
            raise BackupError(f"{Path(command[0]).name} failed. {_describe_what_changed(reason)}: {reason}")


def _describe_what_changed(reason: str) -> str:
    if NO_TRANSACTION in reason:
        return "The file ended the transaction, so a part of it was restored. Restore another backup"
    return "Nothing was changed"


def _check_version(path: str) -> None:
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    major = int(re.search(r"(?<!\d)(\d+)[.\s]", output + "\n")[1])  # type: ignore[index]
    if major < read_server_version():
        raise BackupError(
            f"{path} is version {major} and does not work with a server of version {read_server_version()}. "
            f"Install PostgreSQL's client programs {read_server_version()}."
        )


def _preload_libpq(path: str) -> dict[str, str]:
    """Preloads psycopg's libpq in a bundled program, whose own has no TLS and could not connect as flagadmin does."""
    libpq = _find_libpq_of_psycopg()
    if libpq is None or path != str(find_tool(Path(path).name)):
        return {}
    return {"LD_PRELOAD": str(libpq)}


def _find_libpq_of_psycopg() -> Path | None:
    if sys.platform != "linux" or psycopg.pq.version() // 10000 < BUNDLED_VERSION:
        return None
    try:
        contained = files("psycopg-binary") or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in contained if file.name.startswith("libpq-")), None)


def _find_reason(errors: IO[bytes]) -> str:
    """The last lines of a program's error output."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()[-5:]
    return " ".join(line.strip()[:MAX_LINE_LENGTH] for line in lines if line.strip()) or "it gave no reason."


class BackupError(Exception):
    """A backup or restore failed. The message says what is wrong and what to do."""


OF_FLAGADMIN = {"django_migrations", "projects_flag", "groups_user", "audit_auditevent"}
MAX_NAMED_TABLES = 3


def check_installed() -> None:
    """Raises BackupError unless the database belongs to an installation of flagadmin."""
    tables = _list_tables()
    if not tables >= OF_FLAGADMIN:
        raise BackupError(f"There is no flagadmin installation in {_name_database()}: {_describe(tables)}.")


def check_not_foreign() -> None:
    """Raises BackupError if the database has tables of another application, which a restore would drop."""
    tables = _list_tables()
    if tables and not tables >= OF_FLAGADMIN:
        raise BackupError(
            f"The database {_name_database()} belongs to another application: {_describe(tables)}. "
            "Restore into an empty database."
        )


def check_direct() -> None:
    """Raises BackupError behind a pooler: settings made by PostgreSQL's programs would persist in other sessions."""
    # A pooler gives its clients process ids of its own.
    if fetch_row("SELECT pg_backend_pid()")[0] != connection.connection.info.backend_pid:
        raise BackupError(
            "DATABASE_URL leads to a connection pooler. For backups, give the URL of PostgreSQL itself."
        )


def holds_data() -> bool:
    """Whether the database has ever been used: every change creates an audit event."""
    tables = _list_tables()
    return any(
        fetch_row(f"SELECT EXISTS (SELECT FROM {table})")[0]  # noqa: S608 - constant names
        for table in ("audit_auditevent", "groups_user", "projects_flag")
        if table in tables
    )


def _list_tables() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.table_names(cursor))


def _name_database() -> str:
    connection.ensure_connection()
    info = connection.connection.info
    return f"{info.dbname} at {info.host or 'this machine'}"


def _describe(tables: set[str]) -> str:
    if not tables:
        return "it has no tables"
    named = ", ".join(sorted(tables)[:MAX_NAMED_TABLES])
    return f"it has tables such as {named}" if len(tables) > MAX_NAMED_TABLES else f"its tables are {named}"
