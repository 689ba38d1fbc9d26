"""Runs the bundled pg_dump, pg_restore and psql on the bundled database. Others have PostgreSQL's own tools."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from django.conf import settings
from django.db import connection

from flagadmin.core.db.bundled.programs import find_tool
from flagadmin.core.db.statements import fetch_row

MAX_LINE_LENGTH = 300  # of an error; it may quote a very long statement
NO_TRANSACTION = "there is no transaction in progress"  # psql's warning at the end of --single-transaction
OF_OTHERS = (
    "`backup` and `restore` are for the bundled database. For the database of DATABASE_URL, use pgBackRest, or "
    "pg_dump and pg_restore: docs/operations/back-up.md has the commands."
)


class BackupError(Exception):
    """A backup or restore failed. The message says what is wrong and what to do."""


def is_bundled() -> bool:
    return bool(settings.DATABASES["default"]["ENGINE"] == "flagadmin.core.db.bundled")


def check_bundled() -> None:
    """Raises BackupError for the database of DATABASE_URL."""
    if not is_bundled():
        raise BackupError(OF_OTHERS)


def to_database() -> str:
    """The argument with which a program connects to the database."""
    connection.ensure_connection()
    dsn = connection.connection.info.dsn
    connection.close()  # a restore drops tables that its transaction may have read
    return f"--dbname={dsn}"


@contextmanager
def running(program: str, *arguments: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a bundled program until the end of the context. Kills it if the context raises.

    Raises BackupError if the program fails, even if the context then could not write all of its input.
    """
    with (
        tempfile.TemporaryFile() as errors,  # a pipe could fill up
        subprocess.Popen([find_tool(program), *arguments], stderr=errors, **streams) as process,
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
            raise BackupError(f"{program} failed. {_describe_what_changed(reason)}: {reason}")


def _describe_what_changed(reason: str) -> str:
    if NO_TRANSACTION in reason:
        return "The file ended the transaction, so a part of it was restored. Restore another backup"
    return "Nothing was changed"


def _find_reason(errors: IO[bytes]) -> str:
    """The last lines of a program's error output."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()[-5:]
    return " ".join(line.strip()[:MAX_LINE_LENGTH] for line in lines if line.strip()) or "it gave no reason."


def check_installed() -> None:
    """Raises BackupError unless the database belongs to an installation of flagadmin."""
    if not fetch_row("SELECT to_regclass('public.projects_flag') IS NOT NULL")[0]:
        info = connection.connection.info
        where = f"{info.dbname} at {info.host or 'this machine'}"
        raise BackupError(f"There is no flagadmin installation in the database {where}.")
