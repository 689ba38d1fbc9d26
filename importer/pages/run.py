"""/import/ID/: what an import would do, how far it is, what it did. One address for its whole life."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import path, reverse
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.errors import AppError, NotFound
from flagadmin.pages import Column, Filter, Listing, csv_response, curl_for
from groups.pages.base import ConsolePage
from groups.permissions import Permission
from importer.differences import Change
from importer.heavy import beside
from importer.models import ImportRun
from importer.pages.upload import STEPS
from importer.plan import Plan, no_access
from importer.report import plan_report
from importer.runs import access_run, check_run, confirm, run_document, size_of
from importer.undo import undo_import
from projects.models import Environment

State = ImportRun.State
ACTIONS = {
    "create": ("new", "plus"),
    "change": ("changed", "info"),
    "same": ("the same", "off"),
    "skip": ("skipped", "warn"),
    "refuse": ("blocked", "error"),
}
PLANNED_WORDS = {
    "create": "create",
    "change": "change",
    "same": "the same",
    "skip": "skip",
    "refuse": "blocked",
}
DONE_WORDS = {
    "create": "created",
    "change": "changed",
    "same": "the same",
    "skip": "skipped",
    "refuse": "blocked",
}
PROBLEMS_SHOWN = 100


class FlagRow:
    """A flag of the report, ready for the table."""

    def __init__(self, report: dict[str, Any], run: ImportRun) -> None:
        self.name: str = report["name"]
        self.action: str = report["action"]
        is_over = run.state in (State.DONE, State.UNDONE)
        self.words = DONE_WORDS[self.action] if is_over else PLANNED_WORDS[self.action]
        self.mark = ACTIONS[self.action][1]
        self.reason: str = report.get("reason", "")
        self.summary: str = report.get("summary", "")
        self.changes = [Change(**change) for change in report.get("changes", ())]
        self.is_here = is_over and self.action in ("create", "change", "same")
        self.can_leave_out = self.action in ("create", "change", "refuse")
        self.can_restore = False

    def cells(self) -> list[str]:
        what = "; ".join(map(str, self.changes)) or self.summary or self.reason
        return [self.name, self.words, what]


class RunPage(ConsolePage):
    """GET shows, POST does: check (leave flags out), confirm, undo."""

    columns = (
        Column("flag", "Flag", by=("name",)),
        Column("action", "What happens", by=("action", "name")),
        Column("what", "Difference to now"),
    )

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.plan: Plan | None = None
        return super().dispatch(request, *args, **kwargs)

    def get_title(self) -> str:
        words = {State.DONE: "Imported", State.UNDONE: "Undone: import", State.RUNNING: "Importing"}
        return (
            f"{words.get(State(self.run.state), 'Import')} into {self.run.project} / {self.run.environment}"
        )

    def crumbs(self) -> Sequence[tuple[str, str]]:
        return (("Past imports", "/imports/"),)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        if self.run.state == State.PENDING:
            self.plan = check_run(self.run, caller=self.caller)
        form = request.GET.get("format")
        if form == "json":
            return self.as_json()
        listing = self.listing()
        if form == "csv":
            rows = (row.cells() for row in listing.all_rows)
            return csv_response(f"import-{self.run.project}", ["Flag", "What happens", "Difference"], rows)
        response = self.render_to_response(self.get_context_data(listing=listing))
        if self.run.state == State.RUNNING:
            response["Refresh"] = "2"
        return response

    def as_json(self) -> HttpResponse:
        document = run_document(self.run) | {"flags": self.run.result}
        if self.plan is not None:
            document = plan_report(self.plan)
        return HttpResponse(
            orjson.dumps(document, option=orjson.OPT_INDENT_2),
            content_type="application/json",
            headers={"Content-Disposition": f'attachment; filename="import-{self.run.project}.json"'},
        )

    def listing(self) -> Listing:
        filters = (
            Filter("q", "Find a flag"),
            Filter("show", "Show", [("all", "everything")], any_label="what happens"),
        )
        text, show = (field.value(self.request.GET) for field in filters)
        quiet = () if show else ("same",)
        rows = [
            FlagRow(report, self.run)
            for report in self.run.result
            if report["action"] not in quiet and text.casefold() in report["name"].casefold()
        ]
        columns: Sequence[Column] = self.columns
        if self.plan is not None:
            columns = (*columns, Column("leave-out", "Leave out"))
            self.look_at_stored(rows, self.plan)
        return Listing(self.request.GET, rows, columns=columns, filters=filters, per_page=100)

    def look_at_stored(self, rows: Iterable[FlagRow], plan: Plan) -> None:
        """Flags of this very project have a page, and those that are skipped as archived can be brought back."""
        may_restore = self.caller.can(Permission.UPDATE_FEATURE, project=self.run.project)
        for row in rows:
            stored = plan.flags[row.name].stored
            row.is_here = stored is not None and stored.project == self.run.project
            row.can_restore = row.is_here and row.action == "skip" and may_restore

    def get_template_names(self) -> list[str]:
        names = {State.PENDING: "preview", State.RUNNING: "running"}
        return [f"importer/{names.get(State(self.run.state), 'result')}.html"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            run=self.run,
            waits=self.run.state == State.PENDING,
            steps=STEPS,
            counts=[(self.run.counts.get(action, 0), *words) for action, words in ACTIONS.items()],
            written=self.run.counts.get("create", 0) + self.run.counts.get("change", 0),
            progress=run_document(self.run),
            may_undo=self.caller.can(Permission.UPDATE_FEATURE, project=self.run.project),
            **(self.preview(self.plan) if self.plan else {}),
            **kwargs,
        )

    def preview(self, plan: Plan) -> dict[str, Any]:
        problems = [finding.problem() for finding in plan.findings]
        return {
            "plan": plan,
            "sentence": sentence(plan.counts),
            "problems": problems[:PROBLEMS_SHOWN],
            "more_problems": max(len(problems) - PROBLEMS_SHOWN, 0),
            "created": list(created(plan)),
            "notes": list(notes(plan)),
            "elsewhere": [name for name in plan.sources if name != self.run.environment],
            "is_production": Environment.objects.filter(
                name=self.run.environment, type="production"
            ).exists(),
            "blocked": blocked(plan),
        }

    def curl(self) -> str:
        if self.run.state != State.PENDING:
            return ""
        call = curl_for(self.request, "POST", "/api/admin/features-batch/import")
        return f"{call} -H 'Content-Type: application/json' --data-binary @export.json"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        try:
            self.act(request.POST.get("do", ""))
        except NotFound:
            raise
        except AppError as error:
            messages.error(request, error.message)
        there = reverse("import-run", args=[self.run.id])
        return (
            HttpResponseClientRedirect(there)
            if "HX-Request" in request.headers
            else HttpResponseRedirect(there)
        )

    def act(self, what: str) -> None:
        if what == "confirm":
            beside(size_of(self.run), confirm, self.run.id, caller=self.caller)
        elif what == "undo":
            undo_import(self.run.id, caller=self.caller)
        elif what == "leave-out":
            names = {*self.run.left_out, *self.request.POST.getlist("flag")}
            check_run(self.run, caller=self.caller, left_out=names)
        elif what == "put-back":
            names = {*self.run.left_out} - {*self.request.POST.getlist("flag")}
            check_run(self.run, caller=self.caller, left_out=names)


class ProgressPart(ConsolePage):
    """How far a running import is; once it is over, the way to its result."""

    template_name = "importer/progress.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        run = access_run(self.caller, kwargs["run_id"])
        if run.state not in (State.RUNNING, State.PENDING):
            return HttpResponseClientRedirect(reverse("import-run", args=[run.id]))
        return self.render_to_response({"run": run, "progress": run_document(run), "polling": True})


def sentence(counts: dict[str, int]) -> str:
    """``1 new, 2 changed, 7 the same, 1 skipped. Nothing has been written.``"""
    parts = [f"{counts[action]:,} {words}" for action, (words, _) in ACTIONS.items() if counts.get(action)]
    return f"{', '.join(parts) or 'No flags'}. Nothing has been written."


def created(plan: Plan) -> Iterator[tuple[str, str]]:
    """What else the import makes: (kind, names)."""
    if plan.words is None:
        return
    for kind, new in (
        ("context field", plan.words.new_fields),
        ("tag type", plan.words.new_tag_types),
        ("segment", plan.words.new_segments),
    ):
        if new:
            yield f"{len(new)} {kind}{'s' if len(new) > 1 else ''}", ", ".join(item["name"] for item in new)


def notes(plan: Plan) -> Iterator[str]:
    """What else is worth knowing. Where the file comes from is said above."""
    yield from (note for note in plan.notes if not note.startswith("This file was exported from"))
    if plan.defaulted:
        names = ", ".join(plan.defaulted[:20]) + (" …" if len(plan.defaulted) > 20 else "")
        yield f"On without a strategy that counts, so the default strategy is added: {names}."


def blocked(plan: Plan) -> str:
    """Why it cannot be imported now, "" where it can."""
    if plan.missing:
        return no_access(plan.missing, plan.body.project).message
    if plan.findings:
        problems = "problem" if len(plan.findings) == 1 else "problems"
        return f"{len(plan.findings)} {problems} above. Correct the file, or leave those flags out."
    if not plan.counts["create"] + plan.counts["change"]:
        return "Everything in this file is here already."
    return ""


urlpatterns = [
    path("import/<uuid:run_id>/", RunPage.as_view(), name="import-run"),
    path("import/<uuid:run_id>/progress/", ProgressPart.as_view(), name="import-progress"),
]
