"""/import/: stores an uploaded or pasted export for a target, and offers downloads of flags.

/imports/: past imports, and the user's own pending ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import orjson
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from flagadmin.core.errors import AppError, Problem
from flagadmin.core.lists.pages import curl_for
from groups.console import Caller, Column, ConsolePage, Filter, FormPage, ListPage, Permission
from groups.models import User
from groups.roles.subjects import name_permission
from importer.api import Selection, export_selection, make_file_name
from importer.bulk_work import run_isolated
from importer.converting.convert import TITLES
from importer.converting.files import ENDINGS, weigh
from importer.converting.runs import upload
from importer.models import ImportRun
from importer.pages.preview import ACTIONS
from importer.runs import find_last_target, find_visible_runs
from projects.access import access_project
from projects.models import Environment, Project

STEPS = ("File", "Check changes", "Result")
ACCEPTED = ",".join((*ENDINGS, "application/json"))
PROBLEMS_SHOWN = 100
NO_PROJECT = (
    f'You cannot import into any project: that needs "{name_permission(Permission.UPDATE_FEATURE)}" there. '
    "An admin or project owner can grant you a role with it."
)


class UploadForm(forms.Form):
    """The file and its target, which the next page shows with the changes there."""

    file = forms.FileField(
        required=False,
        label="File",
        help_text="An export, or another product's file. Choose it or drop it here.",
        widget=forms.ClearableFileInput(attrs={"accept": ACCEPTED, "class": "drop"}),
    )
    text = forms.CharField(
        required=False,
        label="Or paste its content",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"}),
    )
    project = forms.ChoiceField(label="Into project")
    environment = forms.ChoiceField(label="Into environment")
    source_environment = forms.CharField(
        required=False,
        max_length=100,
        label="From environment",
        help_text="Only for LaunchDarkly files, which can have several.",
    )

    def __init__(
        self, *args: Any, projects: Sequence[str], environments: Sequence[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, names in (("project", projects), ("environment", environments)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", "Choose…"), *((item, item) for item in names)]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("file") and not cleaned.get("text", "").strip() and not self.errors.get("file"):
            self.add_error("file", "Choose a file, or paste its content below.")
        return cleaned

    def body(self) -> tuple[bytes, str]:
        """The contents and the name of the file. The name is "" for pasted content."""
        file = self.cleaned_data["file"]
        return (file.read(), file.name or "") if file else (self.cleaned_data["text"].encode(), "")


class UploadPage(FormPage):
    template_name = "importer/upload.html"
    title = "Import flags"
    form_class = UploadForm
    body_limit = settings.IMPORT_BODY_LIMIT
    schema_errors: Sequence[Problem] = ()

    def get_initial(self) -> dict[str, Any]:
        """The target named in the URL, or the caller's last one."""
        named = {
            name: self.request.GET[name] for name in ("project", "environment") if name in self.request.GET
        }
        return named or dict(find_last_target(self.caller))

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {
            "projects": list_importable_projects(self.caller),
            "environments": list(Environment.objects.values_list("name", flat=True)),
        }

    def submit(self, form: UploadForm) -> str:
        body, file_name = form.body()
        try:
            run_id = run_isolated(
                weigh(body),
                upload,
                body,
                caller=self.caller,
                project=form.cleaned_data["project"],
                environment=form.cleaned_data["environment"],
                file_name=file_name,
                source_environment=form.cleaned_data["source_environment"],
            )
        except AppError as error:
            self.schema_errors = error.details
            raise
        return reverse("import-run", args=[run_id])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            steps=STEPS,
            schema_errors=self.schema_errors[:PROBLEMS_SHOWN],
            more_schema_errors=max(len(self.schema_errors) - PROBLEMS_SHOWN, 0),
            blocked="" if list_importable_projects(self.caller) else NO_PROJECT,
            limit=settings.IMPORT_BODY_LIMIT // 1_000_000,
            products=TITLES,
            **kwargs,
        )

    def get_curl(self) -> str:
        call = curl_for(self.request, "POST", "/api/admin/features-batch/validate")
        return f"{call} -H 'Content-Type: application/json' --data-binary @export.json"


def list_importable_projects(caller: Caller) -> list[str]:
    """The active projects in which this caller may change flags."""
    projects = Project.objects.active().readable_by(caller).values_list("id", flat=True)
    return [project for project in projects if caller.can(Permission.UPDATE_FEATURE, project=project)]


class ExportFile(ConsolePage):
    """Downloads the export. Raises NotFound (unknown project), ValidationError (unknown environment)."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        project = access_project(self.caller, kwargs["project_id"])
        environment = request.GET.get("environment", "")
        selection = Selection(
            environment=environment,
            project=project.pk,
            full_segments=True,
            saved_contexts="saved-contexts" in request.GET,
        )
        document = orjson.dumps(export_selection(selection, caller=self.caller))
        headers = {"Content-Disposition": f'attachment; filename="{make_file_name(selection)}"'}
        return HttpResponse(document, content_type="application/json", headers=headers)


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
    lead = "Imports from files, the API and the command line, and promotions between environments."
    noun = "import,imports"
    none_yet = "Nothing has been imported yet."
    begin = ("import", "Import flags")
    table_class = "stack run-on"
    columns = (
        Column(
            "when",
            "When",
            by=("created_at",),
            shown="moment",
            link='{% url "import-run" row.id %}',
            css="own-line",
        ),
        Column(
            "who",
            "Who",
            by=("caller_name",),
            cell='<span class="row">{% avatar row.who %} {{ row.who }}</span>',
            css="own-line",
            unlabeled=True,
        ),
        Column(
            "target",
            "Into",
            by=("project", "environment"),
            csv=lambda row: f"{row.project} / {row.environment}",
            cell='<a href="{% url "project" row.project %}">{{ row.project }}</a> / {{ row.environment }}'
            '{% if row.promoted_from %}<small class="below">promoted from {{ row.promoted_from }}</small>{% endif %}',
            unlabeled=True,
        ),
        Column("source", "Via", by=("source",), cell="{{ row.source_label }}", unlabeled=True),
        Column(
            "counts",
            "Flags",
            csv="counts_sentence",
            cell='{% for number, label, mark in row.pills %}<span class="pill {{ mark }}">{{ number|grouped }} '
            "{{ label }}</span> {% empty %}–{% endfor %}",
            unlabeled=True,
        ),
        Column("state", "State", by=("state",), value="state_label", pill="{{ row.mark }}", unlabeled=True),
    )
    default_sort = "-when"
    csv_name = "imports"
    filters = (
        Filter("q", "Project or person", by=("project", "caller_name")),
        Filter("state", "State", list(STATES.items()), by=("state",)),
    )

    def get_rows(self, values: dict[str, str]) -> Any:
        return find_visible_runs(self.caller)

    def complete(self, rows: list[Any]) -> list[Any]:
        names = name_callers(rows)
        for run in rows:
            run.who, run.pills, run.source_label = names[run.pk], list(list_counts(run)), SOURCES[run.source]
            run.counts_sentence = describe_counts(run)
            run.state_label, run.mark = STATES[run.state], MARKS.get(run.state, "plain")
        return rows


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
