"""/projects/ID/access/: lists who has which role in the project, and grants and revokes roles."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce

from flagadmin.core.errors import InvalidOperation
from flagadmin.core.lists.pages import MAX_OPTIONS, Column, Filter, curl_for
from groups.access import missing
from groups.console import ActionPage, Crumbs, ListPage
from groups.models import Grant, Group, Role, User
from groups.people.choices import find_account_by_name, suggest_accounts
from groups.permissions import BuiltIn
from projects.access import access_project
from projects.console import api_path, project_crumbs, project_url
from projects.members.actions import (
    WRITE_PERMISSIONS,
    Holders,
    add_roles,
    check_may_write,
    grantable_roles,
    remove_role,
)
from projects.projects.head import project_head

KINDS = (("person", "people"), ("service", "service accounts"), ("group", "groups"))
IS_KIND = {
    "person": Q(user__is_service=False),
    "service": Q(user__is_service=True),
    "group": Q(group__isnull=False),
}
GROUP_PREFIX = "group: "


class ProjectAccessPage(ListPage):
    template_name = "members/access.html"
    default_sort = "who"
    columns = (
        Column("who", "Who", by=("holder", "role__name")),
        Column("kind", "Kind"),
        Column("role", "Role", by=("role__name", "holder")),
        Column("since", "Since", by=("created_at",)),
    )

    def listing(self) -> Any:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.csv_name = f"{self.project.pk}-access"
        return super().listing()

    def get_title(self) -> str:
        return "Access"

    def crumbs(self) -> Crumbs:
        return project_crumbs(self.project)

    def get_filters(self) -> Sequence[Filter]:
        roles = Role.objects.for_projects().order_by("id")
        return (
            Filter("q", "Name"),
            Filter("role", "Role", [(str(role.pk), role.name) for role in roles]),
            Filter("kind", "Kind", KINDS),
        )

    def rows(self, values: dict[str, str]) -> QuerySet[Any]:
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

    def csv_cells(self, row: Any) -> Sequence[Any]:
        kind = "group" if row.group_id else "service account" if row.user.is_service else "person"
        return (row.holder, kind, row.role.name, row.created_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        project = self.project
        may_write = any(self.caller.can(p, project=project.pk) for p in WRITE_PERMISSIONS)
        offered = may_write and project.archived_at is None
        return super().get_context_data(
            **project_head(project, "project-access", caller=self.caller),
            access_url=project_url(project.pk, "project-access"),
            may_write=offered,
            why_not=self.why_not(may_write),
            roles=grantable_roles(self.caller, project.pk) if offered else [],
            known=known_holders() if offered else [],
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

    def curl(self) -> str:
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/access")


def known_holders() -> list[tuple[str, str]]:
    """Options for the name field: user names, and groups as ``group: Checkout team``."""
    groups = Group.objects.order_by("name").values_list("name", flat=True)[:MAX_OPTIONS]
    return [(f"{GROUP_PREFIX}{name}", "") for name in groups] + suggest_accounts()


def found_holder(text: str) -> tuple[str, User | Group]:
    """Finds a user or group by the text typed.

    A group must be prefixed with ``group:`` unless no account has that name. Raises InvalidOperation with the
    message to show.
    """
    name = text.strip()
    is_group = name.casefold().startswith(GROUP_PREFIX.strip())
    group_name = name[len(GROUP_PREFIX) - 1 :].strip() if is_group else name
    group = Group.objects.filter(name__iexact=group_name).order_by("id").first()
    if is_group:
        if group is None:
            raise InvalidOperation(f"Group {group_name} not found.")
        return "group", group
    try:
        return "user", find_account_by_name(name)
    except InvalidOperation:
        if group is None:
            raise InvalidOperation(
                f"Account or group {name} not found." if name else "Enter a user or a group."
            ) from None
        return "group", group


class AccessAction(ActionPage):
    @property
    def project_id(self) -> str:
        return self.kwargs["project_id"]

    def back(self) -> str:
        return project_url(self.project_id, "project-access")


class GrantRole(AccessAction):
    def act(self) -> str:
        check_may_write(self.caller, self.project_id)
        kind, holder = found_holder(self.request.POST.get("who", ""))
        role = Role.objects.filter(pk=number(self.request.POST.get("role", ""))).first()
        if role is None:
            raise InvalidOperation("Choose a role.")
        add_roles(self.project_id, [Holders(kind, (holder.pk,), f"{kind}s")], [role.pk], caller=self.caller)
        return f"Granted {role.name} to {holder} in {self.project_id}."


class RevokeRole(AccessAction):
    def act(self) -> str:
        check_may_write(self.caller, self.project_id)
        grant = Grant.objects.select_related("role", "user", "group").filter(
            project=self.project_id, pk=number(self.request.POST.get("grant", ""))
        )
        revoked = grant.first()
        if revoked is None:
            raise InvalidOperation("This role has already been revoked.")
        kind, holder_id = ("user", revoked.user_id) if revoked.user_id else ("group", revoked.group_id)
        remove_role(self.project_id, Holders(kind, (holder_id or 0,)), revoked.role_id, caller=self.caller)
        return f"Revoked {revoked.role.name} from {revoked.user or revoked.group} in {self.project_id}."


def number(text: str) -> int:
    """The text as an id; 0 if it is not a valid one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
