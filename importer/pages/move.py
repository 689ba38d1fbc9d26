"""/move/: moving from an Unleash server, for root admins. /move/ID/: its progress and result."""

import shlex
from typing import Any
from uuid import UUID

import orjson
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.functional import cached_property

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import Problem, ValidationError
from groups.console import Column, ConsolePage, Filter, FormPage, ListPage, Permission
from groups.login.links import make_absolute_url
from importer.models import InstallationMove, SourceEvent
from importer.moving import run as background
from importer.moving.leave_out import LISTS, read_choices
from importer.moving.proving.answers import MAX_USERS, read_users
from importer.moving.reading.source import FOR_PAGES, Source, SourceError
from importer.moving.report import Kind, Report

TITLE = "Move from Unleash"
MOVE = (TITLE, reverse_lazy("move"))
MAX_LINES = 500
MAX_FLAGS = 50
"""Differing flags per token that are listed. The file has all of them."""
LABELS = {
    Kind.REFUSE: ("refused", "warn"),
    Kind.CONFLICT: ("edited here", "warn"),
    Kind.LEAVE: ("left out", ""),
    Kind.CHANGE: ("changed", "info"),
    Kind.CREATE: ("new", "plus"),
    Kind.NOTE: ("note", ""),
}
"""Words and marks of the listed lines, in list order."""
Step = InstallationMove.Step


class MoveForm(forms.Form):
    address = forms.CharField(
        label="Address of Unleash", max_length=500, help_text="For example https://unleash.example.com"
    )
    token = forms.CharField(
        label="Admin token",
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="An admin token of that server. It stays in memory until the move ends, and is never stored.",
    )
    projects = forms.CharField(
        required=False,
        max_length=2_000,
        label="Only these projects",
        help_text="Their ids, separated by commas.",
    )
    users = forms.IntegerField(
        initial=10_000,
        min_value=1,
        max_value=MAX_USERS,
        label="Generated users",
        help_text="How many the proof compares.",
    )
    file = forms.FileField(
        required=False,
        label="Your users, in the proof too",
        help_text=f"A CSV file with a header of context fields and up to {MAX_USERS:,} users. It is not stored.",
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )
    left_out = forms.CharField(
        required=False,
        max_length=100_000,
        label="Leave out",
        help_text="One flag on each line. Flags that depend on it are left out too. Or a kind and a name: "
        + ", ".join(f"{kind}:NAME" for kind in LISTS)
        + ".",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    overwrite = forms.BooleanField(required=False, label="Overwrite what was edited here since the last move")
    step = forms.ChoiceField(choices=Step.choices, required=False)

    def clean_left_out(self) -> list[str]:
        lines = [line.strip() for line in self.cleaned_data["left_out"].splitlines() if line.strip()]
        return list(map(str, read_choices(lines, "left_out")))


class MovePage(FormPage):
    template_name = "importer/move.html"
    title = TITLE
    form_class = MoveForm
    body_limit = settings.IMPORT_BODY_LIMIT

    def find(self) -> None:
        self.caller.check(Permission.ADMIN)

    def get_initial(self) -> dict[str, Any]:
        """The values of the named run, without the refused parts if ``without`` says so."""
        run = find_run(self.request.GET.get("run", ""))
        if run is None:
            latest = InstallationMove.objects.first()
            return {"address": latest.address if latest else "", "users": 10_000}
        refused = Report.load(run.report or {}).choices if "without" in self.request.GET else []
        return {
            "address": run.address,
            "users": run.users,
            "projects": ", ".join(run.projects),
            "left_out": "\n".join(dict.fromkeys([*run.left_out, *refused])),
            "overwrite": run.overwrite,
        }

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        try:
            source = Source(data["address"].strip(), data["token"].strip(), limits=FOR_PAGES)
        except SourceError as error:
            raise ValidationError.at("address", str(error)) from None
        file = data["file"]
        csv = file.read() if file else b""
        _check_users(csv)
        run = InstallationMove(
            step=data["step"] or Step.PLAN,
            address=source.address,
            projects=[name.strip() for name in data["projects"].split(",") if name.strip()],
            left_out=data["left_out"],
            users=data["users"],
            file_name=(file.name or "")[:200] if file else "",
            overwrite=data["overwrite"],
            caller_id=self.caller.id,
            caller_name=self.caller.name,
        )
        background.begin(run, source, csv)
        return reverse("move-run", args=[run.pk])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            runs=InstallationMove.objects.all(), has_history=SourceEvent.objects.exists(), **kwargs
        )


def _check_users(csv: bytes) -> None:
    """Raises ValidationError with the problems of the file."""
    try:
        read_users(csv, timezone.now())
    except ValidationError as error:
        raise ValidationError.of(Problem("file", str(problem)) for problem in error.details) from None


def find_run(key: str) -> InstallationMove | None:
    try:
        return InstallationMove.objects.filter(pk=UUID(key)).first()
    except ValueError:
        return None


class MoveRunPage(ConsolePage):
    template_name = "importer/move_run.html"
    parents = (MOVE,)

    @cached_property
    def run(self) -> InstallationMove:
        self.caller.check(Permission.ADMIN)
        key = self.kwargs["run_id"]
        message = f"Move {key} not found. The latest {background.KEPT} are kept."
        return get_or_404(InstallationMove.objects, message, pk=key)

    def get_title(self) -> str:
        return str(self.run)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        run = self.run
        if request.GET.get("format") == "json":
            content = orjson.dumps(_document(run), option=orjson.OPT_INDENT_2)
            return HttpResponse(
                content,
                content_type="application/json",
                headers={"Content-Disposition": f'attachment; filename="move-{run.step}.json"'},
            )
        response = self.render_to_response(self.get_context_data())
        if run.is_running:
            response["Refresh"] = "2"
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        report, proofs = Report.load(self.run.report or {}), self.run.proofs or []
        lines = list(report.join_lines())
        listed = [line for kind in LABELS for line in lines if line.kind is kind]
        return super().get_context_data(
            run=self.run,
            counts=[(number, *LABELS[kind]) for kind in LABELS if (number := report.counts[kind])],
            same=report.same,
            is_refused=report.is_refused,
            has_work=report.has_work or report.has_conflicts,
            lines=[(*LABELS[line.kind], line) for line in listed[:MAX_LINES]],
            more=max(0, len(listed) - MAX_LINES),
            by_hand=[line for line in lines if line.kind is Kind.CANNOT],
            proofs=[(proof, proof["differences"][:MAX_FLAGS]) for proof in proofs],
            unequal=sum(1 for proof in proofs if proof["problem"] or proof["differences"]),
            left_out=sorted({name for proof in proofs for name in proof.get("leftOut", ())}),
            root=make_absolute_url(self.request, "/").rstrip("/"),
            again=f"{reverse('move')}?run={self.run.pk}",
            choices=report.choices,
            with_database=_command(self.run, "apply"),
            follow=_command(self.run, "follow"),
            **kwargs,
        )


def _command(run: InstallationMove, step: str) -> str:
    """The equivalent command on this machine, which can also read the other server's database."""
    options = [part for project in run.projects for part in ("--project", project)]
    options += [part for choice in run.left_out for part in ("--leave-out", choice)]
    return shlex.join(["manage.py", "move", step, "--from", run.address, *options])


def _document(run: InstallationMove) -> dict[str, Any]:
    return {
        "address": run.address,
        "step": run.step,
        "by": run.caller_name,
        "begun": run.created_at,
        "ended": run.finished_at,
        "problem": run.problem,
        "leaveOut": run.left_out,
        "moved": run.report,
        "users": run.users,
        "file": run.file_name,
        "tokens": run.proofs,
    }


class SourceHistoryPage(ListPage):
    """The history recorded by the other installation before its flags moved here."""

    title = "History of the source"
    lead = "What Unleash recorded before the move. It is read-only, and nothing can be reverted to it."
    noun = "change,changes"
    none_yet = "No history yet. The command manage.py move apply --database copies it."
    keeps_bar = False
    default_sort = "-when"
    columns = (
        Column("when", "When", by=("created_at", "event_id"), shown="moment"),
        Column("what", "What", by=("type",), pill=""),
        Column("who", "Who", by=("created_by",)),
        Column("project", "Project", by=("project",), shown='default:"–"'),
        Column("feature", "Flag", by=("feature",), shown='default:"–"'),
        Column("environment", "Environment", by=("environment",), shown='default:"–"'),
    )
    parents = (MOVE,)
    filters = (Filter("flag", "Flag"), Filter("project", "Project"), Filter("type", "What", by=("type",)))

    def get_rows(self, values: dict[str, str]) -> Any:
        self.caller.check(Permission.ADMIN)
        events = SourceEvent.objects.defer("before", "after")
        if values["flag"]:
            events = events.filter(feature=values["flag"])
        return events.filter(project=values["project"]) if values["project"] else events
