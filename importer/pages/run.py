"""/import/ID/: an import's preview, progress, result and undo. /projects/ID/promote: the same for a promotion."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.contrib import messages
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
    StreamingHttpResponse,
)
from django.urls import reverse
from django.utils.functional import cached_property
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.db.transactions import stream_rows
from flagadmin.core.errors import AppError, NoAccess, NotFound, ValidationError, choices, clip, pluralize
from flagadmin.core.lists.pages import curl_for, make_csv_response
from groups.console import Breadcrumbs, Caller, ConfirmPage, ConsolePage, Permission
from importer.apply.undo import Undoing, check_may_undo, find_undoing, plan_undo, undo_import
from importer.bulk_work import run_isolated
from importer.converting.runs import change_conversion
from importer.models import ImportRun
from importer.pages.preview import (
    FlagRow,
    list_csv_rows,
    list_pages_above,
    list_pages_above_part,
    make_conversion_context,
    make_listing,
    name_run,
    preview_context,
    read_options,
)
from importer.pages.upload import STEPS, list_counts, name_callers
from importer.promotion import ENABLED, MAX_FLAGS, STRATEGIES, VARIANTS, Promotion
from importer.runs import (
    access_run,
    change_parts,
    check,
    confirm,
    create_promotion,
    get_promotion,
    run_document,
)
from projects.access import access_project
from projects.console import api_path
from projects.environments.comparison_queries import select_matching
from projects.flags.archive.actions import revive_flags
from projects.projects.required_comments import requires_comment

State = ImportRun.State
PART_NAMES = {STRATEGIES: "Strategies", VARIANTS: "Variants", ENABLED: "On or off"}
NAMED_IN_CURL = 3
ACTIONS = ("confirm", "copy", "convert", "exclude", "include", "restore", "check")


class RunPage(ConsolePage):
    """Shows the stored run on GET. POST checks it again, excludes flags or confirms it."""

    body_limit = settings.IMPORT_BODY_LIMIT  # the choices for percentages may include a file of users
    refusal: AppError | None = None
    changes: Sequence[str] = ()

    def get_title(self) -> str:
        return name_run(self.run)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return list_pages_above(self.run)

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
            rows = list_csv_rows(self.listing, self.run)
            return make_csv_response(self.request, name, ["Flag", "Action", "Changes"], rows)
        response = self.render_to_response(self.get_context_data())
        if self.run.state == State.RUNNING:
            response["Refresh"] = "2"
        return response

    def named(self) -> list[str]:
        return list(self.run.reports.order_by("id").values_list("name", flat=True)[:NAMED_IN_CURL])

    def json_lines(self) -> Iterator[bytes]:
        """Streams the whole report, one line for each flag."""
        head = self.run.preview if self.run.state == State.PENDING else run_document(self.run)
        yield orjson.dumps(head)[:-1] + b',"flags":['
        comma = b"\n"
        for report in stream_rows(self.run.reports.order_by("id")):
            yield comma + orjson.dumps(report.document())
            comma = b",\n"
        yield b"]}"

    @cached_property
    def listing(self) -> Any:
        return make_listing(self.run, self.request.GET)

    def get_template_names(self) -> list[str]:
        names = {State.PENDING: "preview", State.RUNNING: "running"}
        return [f"importer/{names.get(State(self.run.state), 'result')}.html"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        may_update = self.caller.can(Permission.UPDATE_FEATURE, project=self.run.project)
        # Undoing a promotion needs the permissions of its changes, which the undo checks.
        may_undo = may_update or (bool(self.run.promoted_from) and self.caller.id == self.run.caller_id)
        is_pending = self.run.state == State.PENDING
        return super().get_context_data(
            run=self.run,
            who=name_callers([self.run])[self.run.pk],
            is_pending=is_pending,
            steps=STEPS,
            counts=list(list_counts(self.run)),
            parts=list(self.copied_parts()) if is_pending and self.run.promoted_from else (),
            progress=run_document(self.run),
            **self.undoing(may_undo and bool(self.run.written or self.run.saved_contexts)),
            listing=self.listing,
            rows=[
                FlagRow(report, self.run, may_restore=is_pending and may_update)
                for report in self.listing.rows
            ],
            shown={report.name for report in self.listing.rows},
            refusal=self.refusal,
            changes=self.changes,
            comment_required=is_pending and requires_comment([self.run.project], [self.run.environment]),
            **(preview_context(self.run, self.request.GET.getlist("flag")) if is_pending else {}),
            **(make_conversion_context(self.run.preview["conversion"]) if self.is_converted else {}),
            **kwargs,
        )

    @property
    def is_converted(self) -> bool:
        return self.run.state == State.PENDING and bool(self.run.converted_from)

    def copied_parts(self) -> Iterator[tuple[str, str, bool]]:
        """Yields the parts that a promotion can copy: the key, the name, and whether it is copied."""
        copied = get_promotion(self.run).parts
        return ((part, label, part in copied) for part, label in PART_NAMES.items())

    def undoing(self, may_undo: bool) -> dict[str, Any]:
        """Whether undoing is possible, why not, or its result."""
        if self.run.state == State.UNDONE:
            return {"undone": find_undoing(self.run, caller=self.caller)}
        if self.run.state != State.DONE or not may_undo:
            return {"may_undo": False}
        if self.run.written > MAX_PLANNED:
            return {"may_undo": True}
        try:
            plan_undo(self.run, caller=self.caller)
        except AppError as error:
            return {"may_undo": False, "undo_refusal": error.message}
        return {"may_undo": True}

    def get_curl(self) -> str:
        if self.run.state != State.PENDING:
            return ""
        if self.run.promoted_from:
            body = {"from": self.run.promoted_from, "to": self.run.environment, "features": self.named()}
            return curl_for(self.request, "POST", f"{api_path(self.run.project)}/environments/promote", body)
        call = curl_for(self.request, "POST", "/api/admin/features-batch/import")
        return f"{call} -H 'Content-Type: application/json' --data-binary @export.json"

    # Actions -----------------------------------------------------------------------------------------------

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.run = access_run(self.caller, kwargs["run_id"])
        action = request.POST.get("do", "")
        try:
            self.act(action)
        except NotFound:
            raise
        except AppError as error:
            if action == "confirm" and self.run.state == State.PENDING:
                return self.refuse(error)
            messages.error(request, error.message)
        url = reverse("import-run", args=[self.run.id])
        by_script = "HX-Request" in self.request.headers
        return HttpResponseClientRedirect(url) if by_script else HttpResponseRedirect(url)

    def act(self, action: str) -> None:
        flags = {*self.request.POST.getlist("flag")}
        if action == "confirm":
            run_isolated(
                self.run.size,
                confirm,
                self.run.id,
                caller=self.caller,
                fingerprint=self.request.POST.get("fingerprint", ""),
                excluded=flags,
            )
        elif action == "copy":
            parts = get_promotion(self.run).parts ^ {self.request.POST.get("toggle", "")}
            run_isolated(self.run.size, change_parts, self.run.id, parts, caller=self.caller)
        elif action == "convert":
            self.convert()
        elif action == "exclude":
            self.check({*self.run.excluded} | flags)
        elif action == "include":
            self.check({*self.run.excluded} - flags)
        elif action == "restore":
            revive_flags(self.run.project, flags, caller=self.caller)
            self.check()
        elif action == "check":
            self.check()
        else:
            raise ValidationError.at("do", f"must be one of {', '.join(ACTIONS)}, not {action[:40]!r}")

    def convert(self) -> None:
        file = self.request.FILES.get("users")
        users, name = (file.read(), file.name or "") if file else (b"", "")
        options = read_options(self.request.POST)
        run_isolated(
            self.run.size + len(users),
            change_conversion,
            self.run.id,
            options,
            users,
            name,
            caller=self.caller,
        )

    def check(self, excluded: set[str] | None = None) -> Sequence[str]:
        return run_isolated(self.run.size, check, self.run.id, caller=self.caller, excluded=excluded)

    def refuse(self, error: AppError) -> HttpResponseBase:
        """Shows why the import was refused, with an up-to-date preview."""
        try:
            self.changes = self.check({*self.run.excluded, *self.request.POST.getlist("flag")})
        except AppError as conflict:  # another request has confirmed it
            messages.error(self.request, conflict.message)
            return HttpResponseRedirect(reverse("import-run", args=[self.run.id]))
        self.refusal, self.run = error, access_run(self.caller, self.run.id)
        return self.render_to_response(self.get_context_data(), status=error.status)


class ProgressPart(ConsolePage):
    """The progress of a running import. Redirects to the result when it has ended."""

    template_name = "importer/progress.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        run = access_run(self.caller, kwargs["run_id"])
        if run.state not in (State.RUNNING, State.PENDING):
            return HttpResponseClientRedirect(reverse("import-run", args=[run.id]))
        return self.render_to_response({"run": run, "progress": run_document(run), "polling": True})


MAX_PLANNED = 2000
"""Flags of an import up to which pages show the effects of undoing it."""


class UndoPage(ConfirmPage):
    asks_why = True
    run: ImportRun

    def plan(self) -> dict[str, Any]:
        self.run = run = access_run(self.caller, self.kwargs["run_id"])
        question = f"Undo {run.noun} {run.preposition} {run.project} / {run.environment}"
        undoing, blocked = self.plan_undoing()
        return {
            "title": question,
            "lead": f"{pluralize(run.written, 'flag')}. Applications get the earlier results at once.",
            "consequences": [] if blocked else list(describe(undoing, run)),
            "blocked": blocked,
            "hidden": list(self.name_request()),
            "cancel": reverse("import-run", args=[run.id]),
            "comment_required": requires_comment([run.project], [run.environment]),
        }

    def name_request(self) -> Iterator[tuple[str, str]]:
        """The title and note of the change request that undoing becomes if one is needed."""
        run = self.run
        name = clip(run.file_name, 200) if run.file_name and not run.promoted_from else ""
        undone = f"{run.noun} of {name}" if name else f"{run.noun} {run.preposition} {run.environment}"
        yield "request_title", f"Undo the {undone}"
        address = self.request.build_absolute_uri(reverse("import-run", args=[run.id]))
        yield "request_note", f"What is undone: {address}"

    def plan_undoing(self) -> tuple[Undoing | None, str]:
        """The effects of undoing, None if they are not computed, and why it is impossible. Raises NoAccess."""
        try:
            check_may_undo(self.run, caller=self.caller)
            if self.run.written > MAX_PLANNED:
                return None, ""
            return plan_undo(self.run, caller=self.caller), ""
        except NoAccess:
            raise
        except AppError as error:
            return None, error.message

    def get_breadcrumbs(self) -> Breadcrumbs:
        return list_pages_above_part(self.run)

    def act(self) -> tuple[str, str]:
        run = undo_import(self.kwargs["run_id"], caller=self.caller)
        return f"Undid the {run.noun}.", reverse("import-run", args=[run.id])


def describe(undoing: Undoing | None, run: ImportRun) -> Iterator[str]:
    if undoing is None:
        created = "" if run.promoted_from else " Deletes created ones, or archives them if they are in use."
        yield f"Restores changed flags.{created}"
    else:
        effects = {
            "Restores": undoing.restored,
            "Deletes": undoing.deleted,
            "Archives, because in use:": undoing.archived,
        }
        yield from (f"{verb} {choices(names)}." for verb, names in effects.items() if names)
    if run.saved_contexts:
        yield f"Restores or removes {pluralize(len(run.saved_contexts), 'saved context')}."
    yield f"An undone {run.noun} cannot be redone: {'promote' if run.promoted_from else 'import the file'} again."


class PromotePage(ConsolePage):
    """POST: ``from``, ``to``, ``name`` for each flag, or ``matching``, the query string of the list of flags."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        project = access_project(self.caller, kwargs["project_id"])
        source, target = request.POST.get("from", ""), request.POST.get("to", "")
        names = request.POST.getlist("name")
        if "matching" in request.POST:
            query = QueryDict(request.POST["matching"])
            names = [flag.name for flag in select_matching(project, (source, target), query)]
        if len(names) > MAX_FLAGS:
            raise ValidationError.at("name", f"must be at most {MAX_FLAGS:,} flags, not {len(names):,}")
        promotion = Promotion(project.pk, source, target, tuple(dict.fromkeys(names)))
        run_id = run_isolated(promotion.size, plan_promotion, promotion, caller=self.caller)
        return HttpResponseRedirect(reverse("import-run", args=[run_id]))


def plan_promotion(promotion: Promotion, *, caller: Caller) -> UUID:
    return create_promotion(promotion, caller=caller).id
