"""/projects/ID/delete/: lists what must be archived first, then deletes the project once its id is typed.

The form sends the fingerprint of the deletion plan shown on the page. If the project has changed since, it is not
deleted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts.forms import FormVersion
from flagadmin.core.errors import AppError, Conflict, ValidationError, join_words, pluralize
from groups.access import missing
from groups.console import Breadcrumbs, Column, ConsolePage, Filter, ListPage, Permission, SubmitPage
from projects.access import access_project
from projects.console import flag_url, get_project_breadcrumbs
from projects.deletion.execute import back_up_project, delete_project
from projects.deletion.plan import Access, ActiveFlag, DeletionPlan, LastUse, plan_project_deletion
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

    title = "Delete project {page.planned.project.name}"
    template_name = "deletion/delete_project.html"
    csv_name = "{project_id}-active-flags"
    default_sort = "flag"
    per_page = 100
    table_class = "stack blockers"
    refusal: AppError | None = None
    confirm_error = ""
    columns = (
        Column("flag", "Flag", by=("name",), cell='{% include "deletion/active_flag.html" %}'),
        Column("last-seen", "Last seen", by=("seen_at", "name"), shown="ago"),
        Column(
            "in-use",
            "In use by",
            csv=lambda flag: ", ".join(use.application for use in flag.used_by),
            cell='{% include "deletion/in_use.html" %}',
        ),
    )
    api_call = "DELETE /api/admin/projects/{project_id}"

    def find(self) -> None:
        project_id = self.kwargs["project_id"]
        access_project(self.caller, project_id, Permission.DELETE_PROJECT)
        self.planned = plan_project_deletion(project_id, caller=self.caller)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_project_breadcrumbs(self.planned.project)

    def get_filters(self) -> Sequence[Filter]:
        return (Filter("q", "Flag"),) if len(self.planned.active) > FEW or "q" in self.request.GET else ()

    def get_rows(self, values: dict[str, str]) -> list[ActiveFlag]:
        text = values.get("q", "").casefold()
        return [flag for flag in self.planned.active if text in flag.name.casefold()]

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
            active=count_active(plan),
            rows=self.blockers(list(kwargs["listing"].rows)),
            may_archive=may_archive,
            may_not=missing([Permission.DELETE_FEATURE], project=project.pk).message,
            applications=count_applications_seen(project.pk),
            dependants=[(row, flag_url(row.project, row.name)) for row in plan.dependants],
            lost=describe_loss(plan),
            names=list_losses(plan),
            blocked=explain_block(plan),
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
        return self.done(f"Deleted {describe_loss(plan)}.", reverse("projects"))

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


def describe_loss(plan: DeletionPlan) -> str:
    """Describes the losses, such as ``project shop, its 4 archived flags, 2 API tokens, and the access of 1 group``."""
    flags = len(plan.archived) + len(plan.active)
    state = "" if plan.active else "archived "
    parts = [
        f"project {plan.project.pk}",
        f"its {pluralize(flags, f'{state}flag')}" if flags else "",
        pluralize(len(plan.segments), "segment") if plan.segments else "",
        pluralize(len(plan.context_fields), "context field") if plan.context_fields else "",
        pluralize(len(plan.saved_contexts), "saved context") if plan.saved_contexts else "",
        pluralize(len(plan.release_plans), "release plan") if plan.release_plans else "",
        pluralize(len(plan.release_templates), "release template") if plan.release_templates else "",
        pluralize(plan.change_requests, "change request") if plan.change_requests else "",
        pluralize(len(plan.deleted_tokens), "API token") if plan.deleted_tokens else "",
        f"the access of {count_holders(plan)}" if plan.groups or plan.people else "",
    ]
    return join_words([part for part in parts if part], comma=",")


def count_holders(plan: DeletionPlan) -> str:
    """Counts the holders, such as ``1 group and 3 people``; a holder of several roles counts once."""
    numbers = [
        pluralize(_count_people(plan.groups), "group") if plan.groups else "",
        pluralize(_count_people(select_people(plan)), "person", "people") if select_people(plan) else "",
        pluralize(_count_people(select_services(plan)), "service account") if select_services(plan) else "",
    ]
    return join_words([number for number in numbers if number])


def select_people(plan: DeletionPlan) -> list[Access]:
    return [access for access in plan.people if not access.is_service]


def select_services(plan: DeletionPlan) -> list[Access]:
    return [access for access in plan.people if access.is_service]


def list_losses(plan: DeletionPlan) -> list[tuple[str, list[str]]]:
    """The losses as [(label, names), …], without empty entries."""
    named = [
        ("Archived flags", plan.archived),
        ("Active flags", plan.active_names),
        ("Segments", plan.segments),
        ("Context fields", plan.context_fields),
        ("Saved contexts", plan.saved_contexts),
        ("Release plans", plan.release_plans),
        ("Release templates", plan.release_templates),
        ("API tokens", plan.deleted_tokens),
        ("Groups", _name_with_roles(plan.groups)),
        ("People", _name_with_roles(select_people(plan))),
        ("Service accounts", _name_with_roles(select_services(plan))),
        ("Kept, but without this project", plan.name_users),
    ]
    return [(label, names) for label, names in named if names]


def explain_block(plan: DeletionPlan) -> str:
    """Explains why the delete button is disabled; "" if nothing blocks deletion."""
    if plan.is_default:
        return "The default project cannot be deleted."
    if plan.active:
        return f"{count_active(plan)}."
    if plan.dependants:
        flags = len({dependant.name for dependant in plan.dependants})
        verb = "needs" if flags == 1 else "need"
        return f"{pluralize(flags, 'flag')} elsewhere still {verb} what is here."
    return ""


def count_active(plan: DeletionPlan) -> str:
    verb = "is" if len(plan.active) == 1 else "are"
    return f"{pluralize(len(plan.active), 'flag')} {verb} still active"


def _count_people(accesses: Iterable[Access]) -> int:
    return len({access.id for access in accesses})


def _name_with_roles(accesses: Iterable[Access]) -> list[str]:
    """Names the holders with their roles, such as ``Maria Olsen (Owner, Member)``, sorted by name."""
    names: dict[int, str] = {}
    roles: dict[int, list[str]] = {}
    for access in accesses:
        names[access.id] = access.name
        roles.setdefault(access.id, []).append(access.role)
    return [f"{names[key]} ({', '.join(roles[key])})" for key in sorted(names, key=lambda key: names[key])]
