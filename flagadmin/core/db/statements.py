"""Statements in SQL: single ones, bulk inserts with COPY, and ANALYZE.

Tables are analyzed after large writes, before anything reads them: autovacuum does so only after a minute.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import connection

from flagadmin.core.db.transactions import make_at_end_of_action

Parameters = Sequence[Any] | Mapping[str, Any] | None


def execute(statement: str, parameters: Parameters = None) -> int:
    """Executes a statement and returns the number of rows that it changed or read."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def fetch_rows(statement: str, parameters: Parameters = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def fetch_row(statement: str, parameters: Parameters = None) -> Any:
    """The first row; None if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Inserts the rows with COPY and returns their number. Values of JSON columns must be strings.

    COPY ignores Django's defaults: every column without a database default must be given. After many rows, the
    table is analyzed at the end of the action.
    """
    written = 0
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"  # constant names
    # Django's cursor does not convert psycopg errors for copy().
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
            written += 1
    note_written(table, written)
    return written


def allocate_ids(table: str, count: int) -> list[int]:
    """Reserves ids from the table's sequence, for new rows that other new rows refer to."""
    return [
        identifier
        for (identifier,) in fetch_rows(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [table, count]
        )
    ]


MIN_ROWS = 1_000


class _Written:
    """The rows that an action has written, by table. Called at its end, it analyzes tables that have changed much."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()

    def __call__(self) -> None:
        analyze(sorted(table for table, rows in self.rows.items() if rows >= MIN_ROWS))


def note_written(table: str, rows: int) -> None:
    """Makes the current action analyze the table at its end, if it writes many rows in all."""
    if written := make_at_end_of_action(_Written):
        written.rows[table] += rows


def analyze(tables: list[str]) -> None:
    """Analyzes the tables. Skips tables that are being analyzed or vacuumed, instead of waiting."""
    if tables:
        execute(f"ANALYZE (SKIP_LOCKED) {', '.join(tables)}")
