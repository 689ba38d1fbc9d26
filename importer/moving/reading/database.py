"""Reads what the API of Unleash hides from its database: in one read-only transaction, from one snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from pydantic import BaseModel

from importer.moving.reading.shapes import read_shape
from importer.moving.reading.source import SourceError

V = TypeVar("V", bound=BaseModel)
CONNECT_SECONDS = 10
STATEMENT_SECONDS = 600
MAX_ROWS = 1_000_000  # of a table that is read into memory


class SourceDatabase:
    """Tables by name. One that is not there is empty; a column that is not there is NULL, unless it is needed."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        query = """SELECT table_name, array_agg(column_name::text) AS columns
                     FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
                    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' GROUP BY 1"""
        self._columns = {row["table_name"]: {*row["columns"]} for row in connection.execute(query)}
        if not {"users", "features", "events"} <= self._columns.keys():
            raise SourceError(f"{self.address}: is no database of Unleash: tables are missing.")

    @property
    def address(self) -> str:
        info = self.connection.info
        return f"database {info.dbname} at {info.host}"

    @property
    def tables(self) -> set[str]:
        return {*self._columns}

    def count(self, table: str, limit: int) -> int:
        """The number of rows, counted up to the limit."""
        query = sql.SQL("SELECT count(*) AS rows FROM (SELECT 1 FROM {} LIMIT {}) AS first")
        row = self.connection.execute(query.format(sql.Identifier(table), limit)).fetchone()
        return int(row["rows"]) if row else 0

    def has(self, table: str, *columns: str) -> bool:
        return {*columns} <= self._columns.get(table, set())

    def read(self, table: str, shape: type[V]) -> list[V]:
        """All rows. Their columns are the members of the shape."""
        present = self._columns.get(table)
        if present is None:
            return []
        names = [name for name in shape.model_fields if name in present]
        query = sql.SQL("SELECT {} FROM {} LIMIT {}").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table), MAX_ROWS + 1
        )
        rows = self.connection.execute(query).fetchall()
        if len(rows) > MAX_ROWS:
            raise SourceError(f"{self.address}: {table} has more than {MAX_ROWS:,} rows.")
        rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
        return read_shape(self.address, f", table {table}", rows, list[shape])  # type: ignore[valid-type]

    def stream(
        self, query: str, parameters: Mapping[str, Any] | Sequence[Any] = ()
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of any number, a part of them in memory."""
        with self.connection.cursor("moving", row_factory=psycopg.rows.tuple_row) as cursor:
            cursor.itersize = 5_000
            cursor.execute(query, parameters)
            yield from cursor


@contextmanager
def open_database(url: str) -> Iterator[SourceDatabase]:
    """Raises SourceError, whose message never has the password."""
    try:
        connection = psycopg.connect(
            url,
            connect_timeout=CONNECT_SECONDS,
            application_name="flagadmin move",
            row_factory=dict_row,
        )
    except psycopg.OperationalError as error:
        raise SourceError(f"The database of --database cannot be reached: {first_line(error)}") from None
    except (psycopg.Error, UnicodeError):  # these quote the URL
        raise SourceError("--database is no URL like postgres://user:password@host/database.") from None
    try:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'")
        yield SourceDatabase(connection)
    except psycopg.Error as error:
        raise SourceError(f"The database of --database cannot be read: {first_line(error)}") from None
    finally:
        connection.close()


def first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:300]
