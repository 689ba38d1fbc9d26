"""Tables from queries against the company's own PostgreSQL. The operator writes them into a file; people name one.

The file that FLAGADMIN_QUERIES names is YAML: by name, ``sql`` and optionally ``project``. A query runs in a read-only
transaction with a timeout, and its rows are read as CSV while they come, with the limits of other tables.
"""

import csv
import gzip
import io
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import psycopg
import yaml
from django.conf import settings

from flagadmin.core.errors import Conflict, ValidationError
from groups.access import Caller
from groups.permissions import Permission

log = logging.getLogger("flagadmin.queries")

MAX_FILE = 200_000
ROWS = 500
"""That are fetched together."""
CONNECT_SECONDS = 10
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}", re.IGNORECASE).fullmatch


class Query(NamedTuple):
    """``project``: whoever may update its flags may run the query; if None, only admins may."""

    name: str
    sql: str
    project: str | None


def list_queries(caller: Caller) -> list[str]:
    """The names of those that the caller may run. Raises Conflict if the file is not sound."""
    return [query.name for query in _read_queries() if _may_run(caller, query)]


def check_query(caller: Caller, name: str) -> None:
    """Raises ValidationError if there is none that the caller may run, and Conflict."""
    names = list_queries(caller)
    if name not in names:
        told = f"must be one of {', '.join(names)}" if names else "there is no query that you may run"
        raise ValidationError.at("query", told)


def open_query(name: str) -> io.RawIOBase:
    """The rows of a query as CSV with a header. Whoever calls this has checked the right.

    Raises ValidationError, also while rows are read, and Conflict.
    """
    found = {query.name: query for query in _read_queries()}.get(name)
    if found is None:
        raise ValidationError.at("query", f"{name} is no longer there")
    return _Csv(found)


@contextmanager
def spool_query(name: str, most_bytes: int) -> Iterator[Callable[[], IO[bytes]]]:
    """Opens the rows of a query, which runs once, as often as they are read. Raises as ``open_query``."""
    with tempfile.TemporaryFile() as file:
        with open_query(name) as rows, gzip.open(file, "wb", 1) as packed:
            count = 0
            while some := rows.read(1 << 16):
                count += packed.write(some)
                if count > most_bytes:
                    raise ValidationError.at(
                        "query", f"{name} must give at most {most_bytes // 1_000_000:,} MB"
                    )
        file.flush()
        yield lambda: cast("IO[bytes]", _Spooled(file.fileno()))


class _Spooled(io.RawIOBase):
    """A file that is open already, from its beginning."""

    def __init__(self, file: int) -> None:
        self._file, self._place = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        some = os.pread(self._file, len(buffer), self._place)
        buffer[: len(some)] = some
        self._place += len(some)
        return len(some)


def _may_run(caller: Caller, query: Query) -> bool:
    if query.project is None:
        return caller.is_admin
    return caller.can(Permission.UPDATE_FEATURE, project=query.project)


def _read_queries() -> list[Query]:
    if not settings.QUERIES or not settings.QUERIES_DATABASE_URL:
        return []
    try:
        with Path(settings.QUERIES).open(encoding="utf-8") as file:
            found = yaml.safe_load(file.read(MAX_FILE))
        if not isinstance(found, dict):
            raise ValueError("must name queries")
        return [_read_query(name, members) for name, members in found.items()]
    except (OSError, ValueError, yaml.YAMLError) as error:
        log.error("FLAGADMIN_QUERIES, %s: %s", settings.QUERIES, error)
        raise Conflict("The server's file of queries cannot be read; its log says why.") from error


def _read_query(name: Any, members: Any) -> Query:
    if not isinstance(name, str) or not _NAME(name):
        raise ValueError(f"{name}: a name must be letters, digits, -, _ and .")
    if not isinstance(members, dict) or members.keys() - {"sql", "project"}:
        raise ValueError(f"{name}: must have sql, and may have project")
    sql, project = members.get("sql"), members.get("project")
    if not isinstance(sql, str) or not sql.strip(" \n;") or not isinstance(project, str | None):
        raise ValueError(f"{name}: sql must be a query, and project the id of a project")
    return Query(name, sql.strip(" \n;"), project)


class _Csv(io.RawIOBase):
    def __init__(self, query: Query) -> None:
        self._query, self._left = query, b""
        self._connection: psycopg.Connection | None = None
        self._parts = self._read()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = next(self._parts, b"")
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def close(self) -> None:
        """Ends the query, if it has not ended."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                if self._connection.info.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    self._connection.cancel_safe(timeout=CONNECT_SECONDS)
            self._connection.close()
        super().close()

    def _read(self) -> Iterator[bytes]:
        name, end = self._query.name, time.monotonic() + settings.QUERIES_SECONDS
        self._connection = _connect(name)
        try:
            with self._connection, self._connection.cursor("rows") as cursor:
                cursor.itersize = ROWS
                cursor.execute(self._query.sql)  # the operator's, not a caller's
                yield _write([[column.name for column in cursor.description or ()]])
                while rows := cursor.fetchmany(ROWS):
                    # The server's timeout is that of each fetch.
                    if time.monotonic() > end:
                        raise ValidationError.at(
                            "query", f"{name} took more than {settings.QUERIES_SECONDS:,} seconds"
                        )
                    yield _write([_to_text(value) for value in row] for row in rows)
        except psycopg.errors.QueryCanceled as error:
            told = f"{name} took more than {settings.QUERIES_SECONDS:,} seconds"
            raise ValidationError.at("query", told) from error
        except psycopg.Error as error:
            log.warning("Query %s failed: %s", name, error)
            told = error.diag.message_primary or "the connection ended"
            raise ValidationError.at("query", f"{name} failed: {told[:500]}") from error


def _connect(name: str) -> psycopg.Connection:
    milliseconds = settings.QUERIES_SECONDS * 1_000
    try:
        connection = psycopg.connect(
            settings.QUERIES_DATABASE_URL,
            connect_timeout=CONNECT_SECONDS,
            application_name="flagadmin queries",
            options=f"-c statement_timeout={milliseconds} -c idle_in_transaction_session_timeout={milliseconds}"
            " -c default_transaction_read_only=on -c timezone=UTC",
        )
    except psycopg.Error as error:  # whose text has the address
        log.warning("Query %s: %s", name, error)
        raise ValidationError.at(
            "query", "its database cannot be reached; the server's log says why"
        ) from error
    connection.read_only = True
    return connection


def _write(rows: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, dict | list | tuple | bytes):
        raise ValidationError.at(
            "query", f"must select text, numbers, true or false, and times, not {type(value).__name__}"
        )
    return str(value)
