"""Bulk inserts with PostgreSQL's COPY."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.db.statistics import note_written


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
