"""/projects/ID/delete/: lists what must be archived first, then deletes the project once its id is typed.

The form sends the fingerprint of the deletion plan that the page showed. If the project has changed since, it
is not deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts.forms import FormVersion
from flagadmin.core.errors import AppError, Conflict, ValidationError
from flagadmin.core.lists.pages import Column, Filter
from groups.access import missing
from groups.console import Breadcrumbs, ConsolePage, ListPage, SubmitPage
from groups.permissions import Permission
from projects.access import access_project
from projects.console import flag_url, get_project_breadcrumbs
from projects.deletion import summary as words
from projects.deletion.backup import back_up_project
from projects.deletion.execute import delete_project
from projects.deletion.plan import ActiveFlag, LastUse, plan_project_deletion
from projects.history.queries import readable_events
from projects.models import ProjectApplication
from projects.projects.head import make_project_head

IN_USE = timedelta(hours=24)
FEW = 10  # a list this short has no search field


@dataclass(frozen=True, slots=True)
class Blocker:
    """A flag that is still active.

    ``last`` is the most recent use, ``others`` the number of other applications that use it.
    """

    name: str
    url: str
    seen_at: datetime | None
    last: LastUse | None
    others: int
    in_use: bool


class DeleteProjectPage(ListPage, SubmitPage):
    """The page to delete a project. Its list contains the active flags."""

    template_name = "deletion/delete_project.html"
    csv_name = "{project_id}-active-flags"
    default_sort = "flag"
    per_page = 100
    refusal: AppError | None = None
    confirm_error = ""
    columns = (
        Column("flag", "Flag", by=("name",)),
        Column("last-seen", "Last seen", by=("seen_at", "name")),
        Column("in-use", "In use by"),
    )
    api_call = "DELETE /api/admin/projects/{project_id}"

    def find(self) -> None:
        project_id = self.kwargs["project_id"]
        access_project(self.caller, project_id, Permission.DELETE_PROJECT)
        self.planned = plan_project_deletion(project_id, caller=self.caller)

    def get_title(self) -> str:
        return f"Delete project {self.planned.project.name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_project_breadcrumbs(self.planned.project)

    def get_filters(self) -> Sequence[Filter]:
        return (Filter("q", "Flag"),) if len(self.planned.active) > FEW or "q" in self.request.GET else ()

    def get_rows(self, values: dict[str, str]) -> list[ActiveFlag]:
        text = values.get("q", "").casefold()
        return [flag for flag in self.planned.active if text in flag.name.casefold()]

    def get_csv_cells(self, row: ActiveFlag) -> Sequence[Any]:
        return (row.name, row.seen_at, ", ".join(use.application for use in row.used_by))

    def blockers(self, flags: Sequence[ActiveFlag]) -> list[Blocker]:
        recent = timezone.now() - IN_USE
        return [
            Blocker(
                name=flag.name,
                url=flag_url(self.planned.project.pk, flag.name),
                seen_at=flag.seen_at,
                last=flag.used_by[0] if flag.used_by else None,
                others=len(flag.used_by) - 1,
                in_use=bool(flag.used_by) and flag.used_by[0].seen_at >= recent,
            )
            for flag in flags
        ]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        plan, project = self.planned, self.planned.project
        may_archive = self.caller.can(Permission.DELETE_FEATURE, project=project.pk)
        return super().get_context_data(
            plan=plan,
            **make_project_head(project, "project-settings", caller=self.caller),
            active=words.count_active(plan),
            rows=self.blockers(list(kwargs["listing"].rows)),
            may_archive=may_archive,
            may_not=missing([Permission.DELETE_FEATURE], project=project.pk).message,
            applications=count_applications_seen(project.pk),
            dependants=[(row, flag_url(row.project, row.name)) for row in plan.dependants],
            lost=words.describe_loss(plan),
            names=words.list_losses(plan),
            blocked=words.explain_block(plan),
            expected=FormVersion.of(plan.document, self.get_events()),
            refusal=self.refusal,
            changes=self.version.describe_later(self.get_events())
            if isinstance(self.refusal, Conflict)
            else [],
            confirm_error=self.confirm_error,
            **kwargs,
        )

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.refusal = None if self.confirm_error else error
        listing = self.get_listing()
        return self.render_to_response(self.get_context_data(listing=listing), status=error.status)

    def submit(self) -> str:
        self.version = FormVersion.sent(self.request.POST)
        project_id, typed = self.kwargs["project_id"], self.request.POST.get("confirm", "").strip()
        plan = self.planned
        if typed != plan.project.pk:
            self.confirm_error = f"Type {project_id} to confirm" + (f"; you typed {typed}." if typed else ".")
            raise ValidationError.at("confirm", self.confirm_error)
        expected = frozenset([self.version.fingerprint])
        delete_project(project_id, expected=expected, caller=self.caller)
        messages.success(self.request, f"Deleted {words.describe_loss(plan)}.")
        return reverse("projects")

    def get_events(self) -> QuerySet[AuditEvent]:
        return readable_events(self.caller).filter(project=self.kwargs["project_id"])


def count_applications_seen(project_id: str) -> int:
    """The number of applications seen in the project within ``IN_USE``."""
    lately = timezone.now() - IN_USE
    return ProjectApplication.objects.filter(project_id=project_id, last_seen_at__gte=lately).count()


class BackupFile(ConsolePage):
    """A JSON file with one export per environment, including archived flags."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        project_id = kwargs["project_id"]
        documents = orjson.dumps(back_up_project(project_id, caller=self.caller), option=orjson.OPT_INDENT_2)
        name = f"{project_id}-backup-{timezone.now():%Y-%m-%d}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return HttpResponse(documents, content_type="application/json", headers=headers)
