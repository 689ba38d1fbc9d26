"""/imports/: past imports, and the user's own pending ones."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from groups.console import Column, Filter, ListPage
from groups.models import User
from importer.models import ImportRun
from importer.pages.preview import ACTIONS
from importer.runs import find_visible_runs

MARKS = {"pending": "info", "running": "info", "done": "plus", "undone": "warn"}
SOURCES = {"api": "API", "console": "Console", "command": "Command line"}
STATES = {
    "pending": "Awaiting review",
    "running": "Running",
    "done": "Done",
    "undone": "Undone",
}


class HistoryPage(ListPage):
    template_name = "importer/history.html"
    title = "Past imports"
    columns = (
        Column("when", "When", by=("created_at",)),
        Column("who", "Who", by=("caller_name",)),
        Column("target", "Into", by=("project", "environment")),
        Column("source", "Via", by=("source",)),
        Column("counts", "Flags"),
        Column("state", "State", by=("state",)),
    )
    default_sort = "-when"
    csv_name = "imports"
    filters = (Filter("q", "Project or person"), Filter("state", "State", list(STATES.items())))

    def get_rows(self, values: dict[str, str]) -> Any:
        runs = find_visible_runs(self.caller)
        if values["q"]:
            runs = runs.filter(Q(project__icontains=values["q"]) | Q(caller_name__icontains=values["q"]))
        return runs.filter(state=values["state"]) if values["state"] else runs

    def get_csv_cells(self, row: ImportRun) -> Sequence[Any]:
        target = f"{row.project} / {row.environment}"
        return [
            row.created_at,
            row.caller_name,
            target,
            row.source,
            describe_counts(row),
            STATES[row.state],
        ]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        runs = kwargs["listing"].rows
        names = name_callers(runs)
        rows = [
            (
                run,
                names[run.pk],
                list(list_counts(run)),
                SOURCES[run.source],
                STATES[run.state],
                MARKS.get(run.state, "plain"),
            )
            for run in runs
        ]
        return super().get_context_data(runs=rows, **kwargs)


def name_callers(runs: Iterable[ImportRun]) -> dict[UUID, str]:
    """The importing person by run: the full name if the account still exists."""
    people = User.objects.in_bulk({run.caller_id for run in runs if run.caller_id is not None})
    return {
        run.pk: people[run.caller_id].display_name if run.caller_id in people else run.caller_name
        for run in runs
    }


def list_counts(run: ImportRun) -> Iterator[tuple[int, str, str]]:
    """The number of flags for each result that occurs, with its label and the class of its pill."""
    for key, words in ACTIONS.items():
        if run.counts.get(key):
            yield run.counts[key], words.result, words.mark


def describe_counts(run: ImportRun) -> str:
    """The number of flags for each result: ``3 new, 1 changed``."""
    return ", ".join(f"{number:,} {label}" for number, label, _ in list_counts(run))
