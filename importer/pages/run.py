"""/import/ID/: what an import would do, how far it is, what it did. One address for its whole life."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import orjson
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, StreamingHttpResponse
from django.urls import path, reverse
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.console.lists import csv_response, curl_for
from flagadmin.errors import AppError, NotFound
from groups.console import ConsolePage
from groups.permissions import Permission
from importer.apply.undo import undo_import
from importer.isolation import beside
from importer.models import ImportRun
from importer.pages.flag_rows import ACTIONS, FlagRow, csv_rows, listing_of
from importer.pages.preview import preview_context
from importer.pages.upload import STEPS
from importer.runs import access_run, check, confirm, run_document
from projects.flags.archive import revive_flags

State = ImportRun.State


class RunPage(ConsolePage):
    """GET shows what is kept and changes nothing; POST does: check again, exclude flags, confirm, undo."""

    refusal: AppError | None = None
    changes: Sequence[str] = ()

    def get_title(self) -> str:
        words = {State.DONE: "Imported", State.UNDONE: "Undone: import", State.RUNNING: "Importing"}
        return (
            f"{words.get(State(self.run.state), 'Import')} into {self.run.project} / {self.run.environment}"
        )

    def crumbs(self) -> Sequence[tuple[str, str]]:
        return (("Past imports", "/imports/"),)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        form, name = request.GET.get("format"), f"import-{self.run.project}"
        if form == "json":
            return StreamingHttpResponse(
                self.json_lines(),
                content_type="application/json",
                headers={"Content-Disposition": f'attachment; filename="{name}.json"'},
            )
        if form == "csv":
            rows = csv_rows(self.listing, self.run)
            return csv_response(name, ["Flag", "Action", "Changes"], rows)
        response = self.render_to_response(self.get_context_data())
        if self.run.state == State.RUNNING:
            response["Refresh"] = "2"
        return response

    def json_lines(self) -> Iterator[bytes]:
        """The whole report, a flag a line, written as it is sent."""
        head = self.run.preview if self.run.state == State.PENDING else run_document(self.run)
        yield orjson.dumps(head)[:-1] + b',"flags":['
        comma = b"\n"
        for report in self.run.reports.order_by("id").iterator():
            yield comma + orjson.dumps(report.document())
            comma = b",\n"
        yield b"]}"

    @cached_property
    def listing(self) -> Any:
        return listing_of(self.run, self.request.GET)

    def get_template_names(self) -> list[str]:
        names = {State.PENDING: "preview", State.RUNNING: "running"}
        return [f"importer/{names.get(State(self.run.state), 'result')}.html"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_update = self.caller.can(Permission.UPDATE_FEATURE, project=self.run.project)
        waits = self.run.state == State.PENDING
        return super().get_context_data(
            run=self.run,
            waits=waits,
            steps=STEPS,
            counts=[(self.run.counts.get(action, 0), *words) for action, words in ACTIONS.items()],
            written=self.run.counts.get("create", 0) + self.run.counts.get("change", 0),
            progress=run_document(self.run),
            may_undo=may_update,
            listing=self.listing,
            rows=[
                FlagRow(report, self.run, may_restore=waits and may_update) for report in self.listing.rows
            ],
            shown={report.name for report in self.listing.rows},
            refusal=self.refusal,
            changes=self.changes,
            **(preview_context(self.run, self.request.GET.getlist("flag")) if waits else {}),
            **kwargs,
        )

    def curl(self) -> str:
        if self.run.state != State.PENDING:
            return ""
        call = curl_for(self.request, "POST", "/api/admin/features-batch/import")
        return f"{call} -H 'Content-Type: application/json' --data-binary @export.json"

    # What a form asks for ----------------------------------------------------------------------------------

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        what = request.POST.get("do", "")
        try:
            self.act(what)
        except NotFound:
            raise
        except AppError as error:
            if what == "confirm" and self.run.state == State.PENDING:
                return self.refuse(error)
            messages.error(request, error.message)
        there = reverse("import-run", args=[self.run.id])
        by_script = "HX-Request" in request.headers
        return HttpResponseClientRedirect(there) if by_script else HttpResponseRedirect(there)

    def act(self, what: str) -> None:
        flags = {*self.request.POST.getlist("flag")}
        if what == "confirm":
            seen = self.request.POST.get("fingerprint", "")
            beside(self.run.size, confirm, self.run.id, caller=self.caller, seen=seen, excluded=flags)
        elif what == "undo":
            undo_import(self.run.id, caller=self.caller)
        elif what == "exclude":
            self.check({*self.run.left_out} | flags)
        elif what == "include":
            self.check({*self.run.left_out} - flags)
        elif what == "restore":
            revive_flags(self.run.project, flags, caller=self.caller)
            self.check()
        elif what == "check":
            self.check()

    def check(self, left_out: set[str] | None = None) -> Sequence[str]:
        return beside(self.run.size, check, self.run.id, caller=self.caller, left_out=left_out)

    def refuse(self, error: AppError) -> HttpResponseBase:
        """What was confirmed is not done: the page says why, and shows what the import would do now."""
        try:
            self.changes = self.check({*self.run.left_out, *self.request.POST.getlist("flag")})
        except AppError as over:  # somebody else confirmed it
            messages.error(self.request, over.message)
            return HttpResponseRedirect(reverse("import-run", args=[self.run.id]))
        self.refusal, self.run = error, access_run(self.caller, self.run.id)
        return self.render_to_response(self.get_context_data(), status=error.status)


class ProgressPart(ConsolePage):
    """How far a running import is; once it is over, the way to its result."""

    template_name = "importer/progress.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        run = access_run(self.caller, kwargs["run_id"])
        if run.state not in (State.RUNNING, State.PENDING):
            return HttpResponseClientRedirect(reverse("import-run", args=[run.id]))
        return self.render_to_response({"run": run, "progress": run_document(run), "polling": True})


urlpatterns = [
    path("import/<uuid:run_id>/", RunPage.as_view(), name="import-run"),
    path("import/<uuid:run_id>/progress/", ProgressPart.as_view(), name="import-progress"),
]
