"""/access/roles/ID/: who holds the role where, what it permits, and what deleting it would take away."""

from collections.abc import Sequence
from typing import Any

from django.urls import reverse_lazy

from flagadmin.core.lists.pages import Column, Filter
from groups.console import ListPage
from groups.models import Role
from groups.permissions import ROLE_READERS, Permission, Scope
from groups.roles.holders import Holder, count_holders, measure_reach, read_holders
from groups.roles.queries import access_role
from groups.roles.rules import describe_blockers
from groups.roles.subjects import SUBJECTS, list_unused_names
from projects.console import project_url
from projects.members.role_usage import read_role_usage

Subjects = list[tuple[str, list[tuple[str, str, str]]]]
ALL = "all environments"


class UsedIn:
    """A project that uses the role, with its counts."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.project: str = record["project"]
        self.users: int = record["userCount"]
        self.services: int = record["serviceAccountCount"]
        self.groups: int = record["groupCount"]
        self.url = project_url(self.project, "project-access")


BY_PROJECT = (
    Column("project", "Project", by=("project",)),
    Column("users", "Users", by=("users", "project"), numeric=True),
    Column("services", "Service accounts", by=("services", "project"), numeric=True),
    Column("groups", "Groups", by=("groups", "project"), numeric=True),
)
BY_HOLDER = (
    Column("name", "Held by", by=("sort_name", "project")),
    Column("kind", "Kind", by=("kind", "sort_name")),
    Column("project", "Where", by=("project", "sort_name")),
    Column("since", "Since", by=("since",)),
)


class RolePage(ListPage):
    """Lists the projects that use the role, or (``?by=holder``) its holders. A root role has holders."""

    template_name = "members/role.html"
    parents = (("Roles", reverse_lazy("roles")),)
    api_call = "GET /api/admin/projects/roles/{role_id}/access"

    def find(self) -> None:
        self.caller.check_any(ROLE_READERS)
        self.role = access_role(self.caller, self.kwargs["role_id"])
        self.by_holder = self.role.is_root or self.request.GET.get("by") == "holder"
        self.columns = BY_HOLDER if self.by_holder else BY_PROJECT
        self.default_sort = self.columns[0].key
        self.csv_name = f"role-{self.role.pk}-{'holders' if self.by_holder else 'projects'}"

    def get_filters(self) -> Sequence[Filter]:
        return (Filter("q", "Name" if self.by_holder else "Project"),)

    def get_rows(self, values: dict[str, str]) -> list[UsedIn] | list[Holder]:
        if self.by_holder:
            return read_holders(self.role, values["q"])
        text = values["q"].casefold()
        records = read_role_usage(self.role.pk)
        return [UsedIn(each) for each in records if text in each["project"].casefold()]

    def get_title(self) -> str:
        return self.role.name

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        role, use = self.role, count_holders(self.role)
        permissions = role.held_permissions()
        return super().get_context_data(
            role=role,
            use=use,
            by_holder=self.by_holder,
            segments=[] if role.is_root else self.segments(),
            permissions=group_permissions(role),
            is_admin_role=any(each.permission == Permission.ADMIN for each in permissions),
            unused=list_unused_names({each.permission for each in permissions} - {Permission.ADMIN.value}),
            may_change=self.caller.can(Permission.ADMIN),
            blocked=describe_blockers(role),
            reach=measure_reach(role),
            **kwargs,
        )

    def segments(self) -> list[tuple[str, str, None, bool]]:
        """The two lists, as links."""
        return [
            ("By project", "?", None, not self.by_holder),
            ("By holder", "?by=holder", None, self.by_holder),
        ]


def group_permissions(role: Role) -> Subjects:
    """``[(subject, [(name, sentence, environments or "")])]`` of the permissions that have an effect."""
    places: dict[str, list[str]] = {}
    for role_permission in role.held_permissions():
        places.setdefault(role_permission.permission, []).append(role_permission.environment or "")
    subjects: Subjects = []
    for subject, permissions in SUBJECTS.items():
        lines: list[tuple[str, str, str]] = [
            (name, sentence, _describe_environments(permission, places[permission]))
            for permission, (name, sentence) in permissions.items()
            if permission in places
        ]
        if {where for _, _, where in lines} == {ALL}:
            subject, lines = (
                "Flags in all environments",
                [(name, sentence, "") for name, sentence, _ in lines],
            )
        if lines:
            subjects.append((subject, lines))
    return subjects


def _describe_environments(permission: Permission, environments: list[str]) -> str:
    if permission.scope is not Scope.ENVIRONMENT:
        return ""
    return ALL if "" in environments else ", ".join(environments)
