"""Answers a table as CSV: its rows in their order, with what they had of each flag."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from io import BytesIO, StringIO
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings

from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.lists.pages import quote_formula
from flagadmin.core.server.worker_processes import run_in_process
from groups.access import Caller
from playground.outcomes.assign import COLUMNS, Assigner
from playground.outcomes.history import FlagHistory, Sight, read_histories, read_now
from playground.outcomes.partial import RowTable
from playground.outcomes.table import Limits, Rows, Table, is_packed
from playground.user_runs.evaluate import CHUNK_CELLS
from playground.user_runs.runs import AT_ONCE

DEFAULT_LAG = 15  # seconds; SDKs ask every 15 seconds unless they are told otherwise
MAX_LAG = 86_400
MAX_CHANGES = 500
CHUNK = 20_000
"""Rows that are evaluated together."""


class SmallTable(NamedTuple):
    """A whole table that was checked."""

    columns: list[str]
    fields: list[str]
    rows: Rows


class Assignments:
    """Assigns flags to rows. ``counts`` are complete once all ``write_rows`` have been."""

    def __init__(
        self, histories: Iterable[FlagHistory], *, lag: int = DEFAULT_LAG, spreadsheet: bool = False
    ) -> None:
        self._names = [history.name for history in histories]
        self._assigners = [Assigner(history, timedelta(seconds=lag)) for history in histories]
        self._spreadsheet = spreadsheet
        self.rows = 0

    def write_header(self, columns: Sequence[str]) -> str:
        """The header of the answer. Raises ValidationError if a column has the name of one that is added."""
        several = len(self._names) > 1
        added = [f"{name}.{column}" if several else column for name in self._names for column in COLUMNS]
        check_problems(
            Problem("row 1", f"must not have a column {column}, which the answer adds. Rename it")
            for column in columns
            if column in added
        )
        return self._write([[*columns, *added]])

    def write_rows(self, fields: Sequence[str], rows: Rows) -> str:
        table = RowTable(fields, rows.cells, rows.times)
        self.rows += len(table)
        assigned = [assigner.assign(table) for assigner in self._assigners]
        return self._write(chain(row, *cells) for row, *cells in zip(rows.cells, *assigned, strict=True))

    def summarize(self) -> dict[str, Any]:
        return {"rows": self.rows, "flags": [assigner.summarize() for assigner in self._assigners]}

    def _write(self, rows: Iterable[Iterable[str]]) -> str:
        text = StringIO()
        if self._spreadsheet:
            rows = (map(quote_formula, row) for row in rows)
        csv.writer(text).writerows(rows)
        return text.getvalue()


class SmallAnswer:
    """Answers a table that is small enough to do so at once.

    Made before the table is read: raises NotFound, ValidationError and TooLarge as ``read_histories``.
    """

    def __init__(
        self, caller: Caller, environment: str, flags: Sequence[str], *, lag: int, spreadsheet: bool
    ) -> None:
        names = list(dict.fromkeys(flags))
        self._now, self._rows = read_now(), AT_ONCE // len(names)
        sight = Sight.of(caller, environment)
        histories = read_histories(sight, environment, names, max_changes=MAX_CHANGES)
        self._assignments = Assignments(histories, lag=lag, spreadsheet=spreadsheet)

    def answer(self, body: bytes) -> str:
        """Raises ValidationError naming rows; TooLarge."""
        table = _read(body, self._now, self._rows)
        header = self._assignments.write_header(table.columns)
        return header + self._assignments.write_rows(table.fields, table.rows)

    def summarize(self) -> dict[str, Any]:
        return self._assignments.summarize()


def _read(body: bytes, until: datetime, rows: int) -> SmallTable:
    """Reads a large table, or one that may be once it is unpacked, in a process that answers nobody."""
    if len(body) > settings.IMPORT_PROCESS_BYTES or is_packed(body):
        return run_in_process(read_small_table, body, until, rows)
    return read_small_table(body, until, rows)


def read_small_table(body: bytes, until: datetime, rows: int) -> SmallTable:
    limits = Limits(rows, CHUNK_CELLS, settings.IMPORT_BODY_LIMIT)
    table = Table(BytesIO(body), until=until, limits=limits)
    read = Rows([], [], [])
    for some in table.chunks(rows):
        read.numbers.extend(some.numbers)
        read.cells.extend(some.cells)
        read.times.extend(some.times)
    return SmallTable(table.columns, table.fields, read)


def answer_table(table: Table, assignments: Assignments, chunk: int) -> Iterator[str]:
    """The answer in parts, reading no more than so many rows at once."""
    yield assignments.write_header(table.columns)
    for rows in table.chunks(chunk):
        yield assignments.write_rows(table.fields, rows)
