"""Statements in SQL: single ones, bulk inserts with COPY, and ANALYZE.

Tables are analyzed after large writes, before anything reads them: autovacuum does so only after a minute.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, NotSupportedError, connection
from django.db.models import Model, QuerySet
from django.utils.functional import cached_property

from flagadmin.core.db.transactions import make_at_end_of_action

Parameters = Sequence[Any] | Mapping[str, Any] | None


def execute(statement: str, parameters: Parameters = None) -> int:
    """Executes a statement and returns the number of rows that it changed or read."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


FEW = 50
"""The number of ids for which a plan kept by PostgreSQL is certainly good: it is made for ten."""


def fetch_rows(
    statement: str, parameters: Parameters = None, *, prepared: bool = False
) -> list[tuple[Any, ...]]:
    """All rows. With ``prepared``, PostgreSQL keeps the plan of the statement: for small ones in frequent requests."""
    with connection.open_preparing() if prepared else connection.cursor() as cursor:  # type: ignore[attr-defined]
        try:
            cursor.execute(statement, parameters)
        except NotSupportedError:  # a migration has changed the type of a column since
            if not prepared or connection.in_atomic_block:
                raise
            cursor.execute("DEALLOCATE ALL")
            cursor.execute(statement, parameters)
        return cursor.fetchall()


def fetch_row(statement: str, parameters: Parameters = None) -> Any:
    """The first row; None if there is none."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()


M = TypeVar("M", bound=Model)


class Compiled(Generic[M]):
    """A query that is compiled once, which takes longer than to execute it. ``make`` gets strings to compare with."""

    def __init__(self, make: Callable[..., QuerySet[M]]) -> None:
        self._make = make

    def read(self, **values: str) -> list[M]:
        model, fields, converters, compiler, sql, places = self._parts
        rows = fetch_rows(sql, [values.get(place, place) for place in places], prepared=True)
        if converters:
            rows = compiler.apply_converters(rows, converters)
        return [model.from_db(DEFAULT_DB_ALIAS, fields, row) for row in rows]

    def read_first(self, **values: str) -> M | None:
        return next(iter(self.read(**values)), None)

    @cached_property
    def _parts(self) -> Any:
        """The model, its fields and their converters, the compiler, the SQL, and parameters or their names."""
        query = self._make(**{name: name for name in signature(self._make).parameters})
        compiler = query.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, places = compiler.as_sql()
        columns = [column for column, *_ in compiler.select]
        fields = [column.target.attname for column in columns]
        return query.model, fields, compiler.get_converters(columns), compiler, sql, places


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
