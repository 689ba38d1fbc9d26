"""Shared parts of import and promotion pages: title, preview, conversion of another product's file, and flags."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.errors import ValidationError, choices, pluralize
from groups.console import Breadcrumbs, Column, Filter, Listing
from importer.converting.changes import describe_change
from importer.converting.convert import Exactness, Missing, Options
from importer.converting.strategies import DESCRIPTIONS, Choice
from importer.models import FlagReport, ImportRun
from importer.plan.entries import note_on_source
from importer.report import UNPROPOSABLE
from projects.console import PROJECTS, project_url
from projects.history.diff import Change
from projects.models import Environment, Project

PROBLEMS_SHOWN = 100
NAMES_SHOWN = 20
MAX_NAMES_IN_BAR = 3
"""Names in the bar that stays in view, which covers everything else on a phone."""


def preview_context(run: ImportRun, ticked: Collection[str]) -> dict[str, Any]:
    """The template variables. ``ticked``: flags in the URL, selected on other pages of the list."""
    preview = run.preview
    ticks = run.reports.filter(name__in=ticked, action__in=EXCLUDABLE).values_list("name", "action")
    excluding = dict(ticks)
    return {
        "sentence": summarize_counts(run.counts),
        "problems": preview.get("problems", ())[:PROBLEMS_SHOWN],
        "problem_count": preview.get("problemCount", 0),
        "more_problems": max(preview.get("problemCount", 0) - PROBLEMS_SHOWN, 0),
        "created": list(describe_created(preview)),
        "saved_contexts": list(describe_saved_contexts(preview)),
        "also": f" and {pluralize(saved_context_count, 'saved context')}"
        if (saved_context_count := count_written_contexts(preview))
        else "",
        "notes": list(list_notes(preview, run.environment)),
        "elsewhere": [name for name in preview.get("sources", ()) if name != run.environment],
        "is_production": Environment.objects.production().filter(name=run.environment).exists(),
        "blocked": explain_block(run),
        **describe_proposal(preview.get("request", {})),
        "refused": run.counts.get("refuse", 0),
        "ticks": excluding,
        "importing": run.written - sum(action != "refuse" for action in excluding.values()),
    }


def summarize_counts(counts: dict[str, int]) -> str:
    """A summary: ``1 new, 2 changed, 7 the same, 1 skipped. Nothing has been written.``"""
    parts = [f"{counts[action]:,} {words.result}" for action, words in ACTIONS.items() if counts.get(action)]
    return f"{', '.join(parts) or 'No flags'}. Nothing has been written."


def describe_created(preview: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(kind, names) of everything else that the import creates."""
    kinds = (("context field", "contextFields"), ("tag type", "tagTypes"), ("segment", "segments"))
    for kind, key in kinds:
        if names := preview.get(key):
            yield f"{len(names)} {kind}{'s' if len(names) > 1 else ''}", _join_names(names)


def describe_saved_contexts(preview: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(what happens, names) of the file's saved contexts: ``("Creates 1 saved context", "Ada")``."""
    verbs = (("Creates", "create"), ("Changes", "change"), ("Leaves as it is", "same"))
    for verb, action in verbs:
        if names := preview.get("savedContexts", {}).get(action):
            yield f"{verb} {pluralize(len(names), 'saved context')}", _join_names(names)


def list_notes(preview: dict[str, Any], environment: str) -> Iterator[str]:
    """The notes, except for the one about the source environment, which the page shows separately."""
    elsewhere = {note_on_source(source, environment) for source in preview.get("sources", ())}
    listed = [note for note in preview.get("notes", ()) if note not in elsewhere]
    yield from listed[:PROBLEMS_SHOWN]
    if (unlisted := preview.get("noteCount", 0) - PROBLEMS_SHOWN) > 0:
        yield f"{unlisted:,} more notes are in the report."
    if names := preview.get("defaulted"):
        yield f"Enabled without a strategy; the default will be added: {_join_names(names)}."


def describe_proposal(foreseen: Mapping[str, Any]) -> dict[str, Any]:
    """The page's information about a change request with this import (`foresee_request`)."""
    names = foreseen.get("unproposable", ())
    on_at_once = choices(names, limit=MAX_NAMES_IN_BAR)
    return {
        "is_proposed": foreseen.get("isProposed", True),
        "unproposable": f"{UNPROPOSABLE} {on_at_once}." if on_at_once else "",
        "unproposable_names": names,
        "on_at_once": on_at_once,
        "needed_first": choices(foreseen.get("neededFirst", ()), limit=MAX_NAMES_IN_BAR),
        "also_left_out": choices(foreseen.get("alsoLeftOut", ()), limit=MAX_NAMES_IN_BAR),
        "left_out": choices(foreseen.get("leftOut", ()), limit=MAX_NAMES_IN_BAR),
    }


def count_written_contexts(preview: dict[str, Any]) -> int:
    """Counts the saved contexts that the import creates or changes."""
    saved = preview.get("savedContexts", {})
    return sum(len(saved.get(action, ())) for action in ("create", "change"))


def _join_names(names: list[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (" …" if len(names) > NAMES_SHOWN else "")


def explain_block(run: ImportRun) -> str:
    """Why nothing can be imported, even if flags are excluded; "" if something can."""
    if refusal := run.preview.get("refusal"):
        return refusal
    if run.preview.get("general"):
        return "Correct the file: some problems affect more than single flags."
    if run.written + count_written_contexts(run.preview):
        return ""
    if run.preview.get("problemCount"):
        return "Correct the file: none of its flags can be imported."
    return "There is nothing to import: every flag already matches the file."


SHORT = {
    Choice.NEW: "Start a new rollout",
    Choice.KEEP: "Keep today's users",
    Choice.BOTH: "Today's users or new ones",
    Choice.FINISH: "Leave out until finished",
}
MISSING = {Missing.OFF: "Import it off", Missing.LEAVE_OUT: "Leave it out"}
MARKS = {
    Exactness.EXACT: "on",
    Exactness.APPROXIMATE: "warn",
    Exactness.OFF: "off",
    Exactness.LEFT_OUT: "off",
}


@dataclass(frozen=True, slots=True)
class ConvertedRow:
    """``percentages`` are the choices for a flag with percentages: value, label, whether it is the current one."""

    name: str
    exactness: str
    mark: str
    sentences: list[str]
    percentages: list[tuple[str, str, bool]]


class ConversionForm(forms.Form):
    """The choices for percentages, and for flags that cannot be converted."""

    percentages = forms.ChoiceField(
        label="Percentages",
        choices=list(SHORT.items()),
        help_text="Each product hashes differently, so the same percentage means different users here.",
    )
    missing = forms.ChoiceField(label="Parts without an equivalent", choices=list(MISSING.items()))
    users = forms.FileField(
        required=False,
        label="Your users",
        help_text="A CSV file with a column userId: who changes, and whom to keep.",
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )


def make_conversion_context(conversion: Mapping[str, Any]) -> dict[str, Any]:
    """``conversion``: the report stored in a run's preview."""
    counts = conversion["counts"]
    return {
        "conversion": conversion,
        "conversion_counts": [
            (counts[each], str(each), MARKS[each]) for each in Exactness if counts.get(str(each))
        ],
        "conversion_rows": list(_make_rows(conversion)),
        "conversion_form": ConversionForm(
            initial={"percentages": conversion["percentages"], "missing": conversion["missing"]}
        ),
        "choice_descriptions": [(SHORT[choice], words) for choice, words in DESCRIPTIONS.items()],
    }


def _make_rows(conversion: Mapping[str, Any]) -> Iterator[ConvertedRow]:
    own = conversion["choices"]
    for flag in conversion["flags"]:
        present = own.get(flag["name"], "")
        offered = [("", "As for all"), *((str(choice), label) for choice, label in SHORT.items())]
        yield ConvertedRow(
            flag["name"],
            flag["exactness"],
            MARKS[Exactness(flag["exactness"])],
            [note["message"] for note in flag["notes"]]
            + ([describe_change(flag["users"], conversion["usersName"])] if "users" in flag else []),
            [(f"{flag['name']}={choice}", label, choice == present) for choice, label in offered]
            if "percentages" in flag
            else [],
        )


def read_options(data: QueryDict) -> Options:
    """Reads the submitted choices. Raises ValidationError."""
    own: dict[str, Choice] = {}
    for entry in data.getlist("choice"):
        name, _, choice = entry.rpartition("=")
        if choice:
            own[name] = _read(Choice, "choice", choice)
    return Options(
        _read(Choice, "percentages", data.get("percentages", "")),
        own,
        _read(Missing, "missing", data.get("missing", "")),
    )


def _read(kind: Any, path: str, value: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise ValidationError.at(path, f"must be one of {choices(kind)}") from None


State = ImportRun.State


class ActionWords(NamedTuple):
    """Names for a flag's state, its pending action and its completed action, and their mark."""

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


_IMPORT = {State.DONE: "Imported", State.UNDONE: "Undone: import", State.RUNNING: "Importing"}
_PROMOTION = {State.DONE: "Promoted", State.UNDONE: "Undone: promotion", State.RUNNING: "Promoting"}


def name_run(run: ImportRun) -> str:
    """``Import into checkout / production``, ``Promote 3 flags to production``, in the past tense once it is done."""
    state = State(run.state)
    if not run.promoted_from:
        return f"{_IMPORT.get(state, 'Import')} into {run.project} / {run.environment}"
    if state == State.UNDONE:
        return f"{_PROMOTION[state]} to {run.environment}"
    flags = pluralize(run.written, "flag")
    return f"{_PROMOTION.get(state, 'Promote')} {flags} to {run.environment}"


def list_pages_above(run: ImportRun) -> Breadcrumbs:
    if not run.promoted_from:
        return (("Past imports", reverse("imports")),)
    environments = (
        f"{project_url(run.project, 'environments-compare')}?from={run.promoted_from}&to={run.environment}"
    )
    name = Project.objects.filter(pk=run.project).values_list("name", flat=True).first() or run.project
    return (PROJECTS, (name, project_url(run.project)), ("Environments", environments))


def list_pages_above_part(run: ImportRun) -> Breadcrumbs:
    """The same for a page of the run other than its own."""
    return (*list_pages_above(run), (name_run(run), reverse("import-run", args=[run.id])))
