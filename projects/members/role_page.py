"""/access/roles/ID/: a role's permissions, the projects that use it, and who has it as a root role."""

from typing import Any

from django.urls import reverse

from flagadmin.console.lists import Column, curl_for
from groups.console import Crumbs, ListPage
from groups.models import Role
from groups.permissions import Permission
from groups.roles.actions import READERS, access_role, permissions_of, why_not_deleted
from projects.console import project_url
from projects.members.role_usage import role_usage

HOLDERS_SHOWN = 100


class UsedIn:
    """A project that uses the role, with its counts."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.project: str = record["project"]
        self.users: int = record["userCount"]
        self.services: int = record["serviceAccountCount"]
        self.groups: int = record["groupCount"]
        self.url = project_url(self.project, "project-access")


class RolePage(ListPage):
    template_name = "members/role.html"
    default_sort = "project"
    columns = (
        Column("project", "Project", by=("project",)),
        Column("users", "Users", by=("users", "project"), numeric=True),
        Column("services", "Service accounts", by=("services", "project"), numeric=True),
        Column("groups", "Groups", by=("groups", "project"), numeric=True),
    )

    def listing(self) -> Any:
        self.caller.check_any(READERS)
        self.role = access_role(self.caller, self.kwargs["role_id"])
        self.csv_name = f"role-{self.role.pk}-projects"
        return super().listing()

    def rows(self, values: dict[str, str]) -> list[UsedIn]:
        return [UsedIn(record) for record in role_usage(self.role.pk)]

    def get_title(self) -> str:
        return self.role.name

    def crumbs(self) -> Crumbs:
        return (("Roles", reverse("roles")),)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        role = self.role
        users = role.users.order_by("username")
        return super().get_context_data(
            role=role,
            permissions=permissions_by_scope(role),
            users=users[:HOLDERS_SHOWN],
            more_users=max(0, users.count() - HOLDERS_SHOWN),
            groups=role.groups.order_by("name")[:HOLDERS_SHOWN],
            more_groups=max(0, role.groups.count() - HOLDERS_SHOWN),
            may_change=self.caller.can(Permission.ADMIN),
            blocked=why_not_deleted(role),
            **kwargs,
        )

    def curl(self) -> str:
        return curl_for(self.request, "GET", f"/api/admin/projects/roles/{self.role.pk}/access")


SCOPES = {"root": "Everywhere", "project": "In the project", "environment": "In environments of the project"}


def permissions_by_scope(role: Role) -> list[tuple[str, list[tuple[str, str]]]]:
    """``[(scope, [(permission, environments or "")])]`` as display text."""
    found: dict[str, dict[str, list[str]]] = {scope: {} for scope in SCOPES}
    for held in permissions_of(role):
        permission = Permission.__members__.get(held.permission)
        if permission is None:
            continue
        places = found[permission.scope.value].setdefault(permission.display, [])
        if permission.scope.value == "environment":
            places.append(held.environment or "every environment")
    return [
        (SCOPES[scope], [(name, ", ".join(places)) for name, places in sorted(held_here.items())])
        for scope, held_here in found.items()
        if held_here
    ]
