"""Answers a table as CSV: its rows in their order, with what they had of each flag.

The changes that an incident found, as the page of its run shows them.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from io import BytesIO, StringIO
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings
from django.urls import reverse

from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.lists.charts import format_percent
from flagadmin.core.lists.pages import quote_formula
from flagadmin.core.server.worker_processes import run_in_process
from groups.access import Caller
from playground.models import UserRun
from playground.outcomes.assign import COLUMNS, Assigner
from playground.outcomes.history import FlagHistory, Sight, read_histories, read_now
from playground.outcomes.partial import RowTable
from playground.outcomes.statistics import format_p
from playground.outcomes.table import Limits, Rows, Table, is_packed
from playground.user_runs.evaluate import CHUNK_CELLS
from playground.user_runs.runs import AT_ONCE
from projects.history.changes import GroupedChange, change_page
from projects.history.queries import readable_events
from projects.reverts.change_plan import add_reverts

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


SHOWN = 50
OTHERS = {
    "given": "others",
    "own": "of your own users",
    "generated": "generated users, which stand in for others",
}


class Share(NamedTuple):
    percent: float
    text: str
    counts: str


class FoundRow(NamedTuple):
    """``flag`` is that of something in common. ``change`` is None if it left no event."""

    flag: str
    sentence: str
    affected: Share
    others: Share
    p: str
    is_likely: bool
    at: datetime | None = None
    change: GroupedChange | None = None


def describe_found(run: UserRun, caller: Caller) -> dict[str, Any]:
    """The context of the page: its first changes, and what the affected have in common. About ten queries."""
    found = run.counts
    return {
        "groups": f"{found['affected']:,} affected users, {found['others']:,} {OTHERS[found['othersAre']]}",
        "since": datetime.fromisoformat(found["from"]),
        "until": datetime.fromisoformat(found["to"]),
        "rows": _list_changes(run, found["changes"][:SHOWN], caller),
        "equal": _count_equal(found["changes"]),
        "more": len(found["changes"]) - SHOWN,
        "common": [_make_row(each, each["flag"]) for each in found["common"]],
        "has_others": found["othersAre"] != "generated",
    }


def _count_equal(changes: Sequence[Mapping[str, Any]]) -> int:
    """The changes that explain as much as the first one: those that the same users noticed."""
    first = changes[0] if changes else None
    return sum(each["noticed"] == first["noticed"] and each["isLikely"] for each in changes) if first else 0


def _list_changes(run: UserRun, changes: Sequence[Mapping[str, Any]], caller: Caller) -> list[FoundRow]:
    events = _find_changes([int(each["change"]) for each in changes if each["change"]], run, caller)
    return [
        _make_row(
            each,
            at=datetime.fromisoformat(each["at"]),
            change=events.get(int(each["change"] or 0)),
        )
        for each in changes
    ]


def _find_changes(ids: Sequence[int], run: UserRun, caller: Caller) -> Mapping[int, GroupedChange]:
    if not ids:
        return {}
    page = change_page(readable_events(caller).filter(pk__in=ids), caller=caller, size=len(ids))
    changes = add_reverts(page.changes, back=reverse("user-run", args=[run.pk]), caller=caller)
    return {
        pk: change for change in changes for pk in (change.event.pk, *(row.event.pk for row in change.rows))
    }


def _make_row(found: Mapping[str, Any], flag: str = "", **others: Any) -> FoundRow:
    affected, rest = (
        _make_share(found["noticed"][group], found["known"][group]) for group in ("affected", "others")
    )
    p = format_p(found["pAdjusted"])
    return FoundRow(flag, found["sentence"], affected, rest, p, found["isLikely"], **others)


def _make_share(count: int, total: int) -> Share:
    percent = 100 * count / max(1, total)
    text = format_percent(percent) if total else "–"
    return Share(round(percent, 2), text, f"{count:,} of {total:,}")
