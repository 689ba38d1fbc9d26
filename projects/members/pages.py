"""/projects/ID/access/: lists who has which role in the project, and revokes roles."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.functional import cached_property

from flagadmin.core.errors import InvalidOperation
from flagadmin.core.http.ids import read_id
from flagadmin.core.lists.pages import Column, Filter
from groups.access import missing
from groups.console import ActionPage, ListPage
from groups.models import Grant, Role, User
from groups.permissions import BuiltIn
from projects.console import InProjectPage, project_url
from projects.members.actions import (
    WRITE_PERMISSIONS,
    Holders,
    check_may_write,
    remove_role,
)
from projects.members.queries import describe_environments_of_roles
from projects.projects.head import make_project_head

KINDS = (("person", "people"), ("service", "service accounts"), ("group", "groups"))
IS_KIND = {
    "person": Q(user__is_service=False),
    "service": Q(user__is_service=True),
    "group": Q(group__isnull=False),
}


class ProjectAccessPage(InProjectPage, ListPage):
    template_name = "members/access.html"
    default_sort = "who"
    columns = (
        Column("who", "Who", by=("holder", "role__name")),
        Column("kind", "Kind"),
        Column("role", "Role", by=("role__name", "holder")),
        Column("environments", "Environments"),
        Column("since", "Since", by=("created_at",)),
    )
    title = "Access"
    csv_name = "{project_id}-access"
    api_call = "GET /api/admin/projects/{project_id}/access"

    def get_filters(self) -> Sequence[Filter]:
        roles = Role.objects.for_projects().order_by("id")
        return (
            Filter("q", "Name"),
            Filter("role", "Role", [(str(role.pk), role.name) for role in roles]),
            Filter("kind", "Kind", KINDS),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        grants = (
            Grant.objects.filter(project=self.project)
            .select_related("role", "user", "group")
            .annotate(
                holder=Coalesce("user__username", "group__name"),
                member_count=Count("group__memberships"),
            )
        )
        if text := values["q"]:
            grants = grants.filter(Q(holder__icontains=text) | Q(user__name__icontains=text))
        if values["role"]:
            grants = grants.filter(role=int(values["role"]))
        return grants.filter(IS_KIND[values["kind"]]) if values["kind"] else grants

    @cached_property
    def places(self) -> dict[int, str]:
        return describe_environments_of_roles(
            {*Grant.objects.filter(project=self.project).values_list("role_id", flat=True)}
        )

    def get_csv_cells(self, row: Any) -> Sequence[Any]:
        kind = "group" if row.group_id else "service account" if row.user.is_service else "person"
        return (row.holder, kind, row.role.name, self.places.get(row.role_id, ""), row.created_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        project = self.project
        may_write = any(self.caller.can(p, project=project.pk) for p in WRITE_PERMISSIONS)
        offered = may_write and project.archived_at is None
        return super().get_context_data(
            **make_project_head(project, "project-access", caller=self.caller),
            access_url=project_url(project.pk, "project-access"),
            may_write=offered,
            why_not=self.why_not(may_write),
            rows=[(grant, self.places.get(grant.role_id, "")) for grant in kwargs["listing"].rows],
            root_admins=User.objects.active().filter(root_role=BuiltIn.ADMIN).count(),
            **kwargs,
        )

    def why_not(self, may_write: bool) -> str:
        if not may_write:
            need = missing(WRITE_PERMISSIONS, project=self.project.pk).message
            return f"To grant and revoke roles, {need[:1].lower()}{need[1:]}"
        return (
            ""
            if self.project.archived_at is None
            else "This project is archived. Revive it to change access."
        )


class RevokeRole(ActionPage):
    @property
    def project_id(self) -> str:
        return self.kwargs["project_id"]

    def get_success_url(self) -> str:
        return project_url(self.project_id, "project-access")

    def act(self) -> str:
        check_may_write(self.caller, self.project_id)
        grant = Grant.objects.select_related("role", "user", "group").filter(
            project=self.project_id, pk=read_id(self.request.POST.get("grant", "")) or 0
        )
        revoked = grant.first()
        if revoked is None:
            raise InvalidOperation("This role has already been revoked.")
        kind, holder_id = ("user", revoked.user_id) if revoked.user_id else ("group", revoked.group_id)
        remove_role(self.project_id, Holders(kind, (holder_id or 0,)), revoked.role_id, caller=self.caller)
        return f"Revoked {revoked.role.name} from {revoked.user or revoked.group} in {self.project_id}."
