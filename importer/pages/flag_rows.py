"""The table of an import's flags, with what the import does or did to each."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.http import QueryDict

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.lists.pages import Column, Filter, Listing
from importer.models import FlagReport, ImportRun
from projects.history.diff import Change

State = ImportRun.State


class ActionWords(NamedTuple):
    """What a flag is, what is to be done or was done with it, and the mark of all three."""

    result: str
    planned: str
    done: str
    mark: str


ACTIONS = {
    "create": ActionWords("new", "create", "created", "plus"),
    "change": ActionWords("changed", "change", "changed", "info"),
    "same": ActionWords("the same", "the same", "the same", ""),
    "skip": ActionWords("skipped", "skip", "skipped", "warn"),
    "refuse": ActionWords("blocked", "blocked", "blocked", "error"),
}
COLUMNS = (
    Column("flag", "Flag", by=("name",)),
    Column("action", "Action", by=("action", "name")),
    Column("what", "Changes"),
)
EXCLUDE = Column("exclude", "Exclude")
EXCLUDABLE = ("create", "change", "refuse")


class FlagRow:
    """A row of the table."""

    def __init__(self, report: FlagReport, run: ImportRun, *, may_restore: bool = False) -> None:
        self.name, self.action, self.reason = report.name, report.action, report.reason
        self.summary = report.summary
        self.changes = [Change(**change) for change in report.changes]
        is_over = run.state in (State.DONE, State.UNDONE)
        words = ACTIONS[self.action]
        self.words, self.mark = words.done if is_over else words.planned, words.mark
        written = run.state == State.DONE and self.action == "create"
        self.is_here = report.is_here or written
        self.can_exclude = self.action in EXCLUDABLE
        self.can_restore = may_restore and report.is_here and self.action == "skip"

    def cells(self) -> list[str]:
        description = "; ".join(map(str, self.changes)) or self.summary or self.reason
        return [self.name, self.words, description]


def make_listing(run: ImportRun, query: QueryDict) -> Listing[FlagReport]:
    """The flags' reports, filtered, sorted and paged in SQL. Unchanged flags are hidden by default."""
    filters = (
        Filter("q", "Find a flag"),
        Filter("show", "Flags", [("all", "all, even if unchanged")]),
    )
    text, show = (field.value(query) for field in filters)
    reports: QuerySet[FlagReport] = run.reports.order_by("id")
    if not show:
        reports = reports.exclude(action="same")
    if text:
        reports = reports.filter(name__icontains=text)
    columns = (*COLUMNS, EXCLUDE) if run.state == State.PENDING else COLUMNS
    return Listing(query, reports, columns=columns, filters=filters, per_page=100)


def list_csv_rows(listing: Listing[FlagReport], run: ImportRun) -> Iterator[list[Any]]:
    return (FlagRow(report, run).cells() for report in stream_rows(listing.all_rows))
