"""/access/roles/: list, create, edit and delete roles. ``projects.members.pages`` shows one role."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.urls import reverse, reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import pluralize
from groups.console import Breadcrumbs, Column, ConfirmPage, EditPage, Filter, FormPage, ListPage
from groups.models import Grant, Group, Role, RolePermission, User
from groups.models.roles import HeldPermission, RoleDocument
from groups.permissions import ROLE_READERS, Permission, Scope
from groups.roles import actions
from groups.roles.actions import (
    RoleChanges,
    access_role,
    check_not_built_in,
    describe_blockers,
    read_environment_names,
)
from groups.roles.holders import measure_reach
from groups.roles.subjects import is_used, list_offered, list_unused_names

ROLES = ("Roles", reverse_lazy("roles"))


def role_url(role_id: int) -> str:
    return reverse("role", args=[role_id])


def _count_distinct(rows: QuerySet[Any], by: str, what: str) -> Subquery:
    """A subquery that counts the distinct values of ``what`` among the rows of each role."""
    counted = rows.filter(**{by: OuterRef("pk")}).order_by().values(by)
    return Subquery(counted.annotate(n=Count(what, distinct=True)).values("n"))


class RolesPage(ListPage):
    template_name = "roles/roles.html"
    title = "Roles"
    lead = "Root roles apply everywhere, project roles in the projects where they are granted."
    noun = "role,roles"
    new = ("role-new", "New project role")
    creates = Permission.ADMIN
    columns = (
        Column(
            "name",
            "Role",
            by=("name",),
            link='{% url "role" row.pk %}',
            below="description|truncatechars:140",
        ),
        Column("type", "Type", by=("type", "id"), pill="line", cell="{{ row.get_type_display }}"),
        Column("permissions", "Permissions", by=("permission_count",), numeric=True),
        Column("users", "Accounts", by=("user_count",), numeric=True, value="holding_accounts"),
        Column("groups", "Groups", by=("group_count",), numeric=True, value="holding_groups"),
        Column(
            "projects",
            "Projects",
            by=("project_count",),
            numeric=True,
            cell="{% if row.is_root %}all{% else %}{{ row.project_count|grouped }}{% endif %}",
        ),
    )
    filters = (Filter("q", "Name", by=("name",)), Filter("type", "Type", Role.Type.choices, by=("type",)))
    api_call = "GET /api/admin/roles"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        self.caller.check_any(ROLE_READERS)
        return Role.objects.annotate(
            permission_count=_count_distinct(RolePermission.objects.all(), "role", "permission"),
            user_count=_count_distinct(Grant.objects.all(), "role", "user"),
            group_count=_count_distinct(Grant.objects.all(), "role", "group"),
            root_user_count=_count_distinct(User.objects.all(), "root_role", "pk"),
            root_group_count=_count_distinct(Group.objects.all(), "root_role", "pk"),
            project_count=_count_distinct(Grant.objects.all(), "role", "project"),
        ).order_by("id")

    def complete(self, rows: list[Any]) -> list[Any]:
        for role in rows:
            role.holding_accounts, role.holding_groups = read_holder_counts(role)
            role.permission_count, role.project_count = role.permission_count or 0, role.project_count or 0
        return rows


def read_holder_counts(role: Any) -> tuple[int, int]:
    """Reads how many accounts and groups hold the role: globally for a root role, otherwise in projects."""
    if role.is_root:
        return role.root_user_count or 0, role.root_group_count or 0
    return role.user_count or 0, role.group_count or 0


Cell = tuple[str, str, bool]
"""The value of a checkbox, its label for screen readers, and whether it is checked."""


@dataclass(frozen=True, slots=True)
class Box:
    """A permission in the form, with one checkbox, or one for all environments and one for each."""

    name: str
    sentence: str
    cells: list[Cell]


class RoleForm(forms.Form):
    """The form for a role. Values of ``permissions``: ``PERMISSION`` or ``PERMISSION ENVIRONMENT``."""

    name = forms.CharField(max_length=255)
    description = forms.CharField(required=False, max_length=10_000, widget=forms.Textarea(attrs={"rows": 2}))
    permissions = forms.MultipleChoiceField(required=False)

    def __init__(self, *args: Any, is_root: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_root = is_root
        self.environments = [] if is_root else read_environment_names()
        self.fields["permissions"].choices = [(v, v) for v in self._list_values()]  # type: ignore[attr-defined]

    def _list_values(self) -> Iterable[str]:
        for _, permissions in list_offered(root=self.is_root):
            for permission in permissions:
                yield permission.value
                if permission.scope is Scope.ENVIRONMENT:
                    yield from (f"{permission.value} {name}" for name in self.environments)

    def selected(self) -> set[str]:
        values = self["permissions"].value()
        return set(values or ())

    def subjects(self) -> Iterator[tuple[str, bool, list[Box]]]:
        """(subject, whether its permissions are held by environment, its permissions)."""
        selected = self.selected()
        for subject, permissions in list_offered(root=self.is_root):
            by_environment = next(iter(permissions)).scope is Scope.ENVIRONMENT
            places = ["", *self.environments] if by_environment else [""]
            yield subject, by_environment, [
                Box(name, sentence, [_make_cell(permission, name, environment, selected) for environment in places])
                for permission, (name, sentence) in permissions.items()
            ]  # fmt: skip

    def held(self) -> list[HeldPermission]:
        parts = (value.split(" ", 1) for value in self.cleaned_data["permissions"])
        return [HeldPermission(part[0], part[1] if len(part) == 2 else None) for part in parts]


def _make_cell(permission: Permission, name: str, environment: str, selected: set[str]) -> Cell:
    value = f"{permission.value} {environment}".rstrip()
    return value, f"{name} in {environment or 'all environments'}", value in selected


class NewRolePage(FormPage):
    """Creates a role: with ``?type=root-custom`` a root role, otherwise a role for projects."""

    template_name = "roles/role_form.html"
    form_class = RoleForm
    button = "Create role"
    parents = (ROLES,)
    api_call = "POST /api/admin/roles"
    permission = Permission.ADMIN

    def is_root(self) -> bool:
        return self.request.GET.get("type") == Role.Type.ROOT_CUSTOM

    def get_title(self) -> str:
        return "New root role" if self.is_root() else "New project role"

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"is_root": self.is_root()}

    def submit(self, form: Any) -> str:
        role = actions.create_role(
            form.cleaned_data["name"],
            description=form.cleaned_data["description"],
            type=Role.Type.ROOT_CUSTOM.value if form.is_root else Role.Type.CUSTOM.value,
            permissions=form.held(),
            caller=self.caller,
        )
        return self.done(f"Created role {role.name}.", role_url(role.pk))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"is_root": self.is_root(), **kwargs})

    def get_api_body(self) -> dict[str, Any]:
        kind = Role.Type.ROOT_CUSTOM.value if self.is_root() else Role.Type.CUSTOM.value
        permission = "CREATE_SEGMENT" if self.is_root() else "UPDATE_FEATURE"
        return {"name": "Helper", "type": kind, "permissions": [{"name": permission}]}


class EditRolePage(EditPage, NewRolePage):
    button = "Save role"
    api_call = "PUT /api/admin/roles/{role_id}"

    def find(self) -> None:
        super().find()
        self.role = access_role(self.caller, self.kwargs["role_id"])
        check_not_built_in(self.role, "changed")

    def get_events(self) -> QuerySet[AuditEvent]:
        return AuditEvent.objects.filter(type=EventType.ROLE_UPDATED, after__id=self.role.pk)

    def get_current_document(self) -> RoleDocument:
        return self.role.document()

    def is_root(self) -> bool:
        return self.role.is_root

    def get_title(self) -> str:
        return f"Edit {self.role.name}"

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (ROLES, (self.role.name, role_url(self.role.pk)))

    def get_initial(self) -> dict[str, Any]:
        role = self.role
        permissions = role.held_permissions()
        return {
            "name": role.name,
            "description": role.description,
            "permissions": [
                f"{h.permission} {h.environment}" if h.environment else h.permission for h in permissions
            ],
        }

    def submit(self, form: Any) -> str:
        data = form.cleaned_data
        unused = [held for held in self.role.held_permissions() if not is_used(held.permission)]
        changes: RoleChanges = {
            "name": data["name"],
            "description": data["description"],
            "permissions": [*form.held(), *unused],
        }
        expected = self.version.expected
        role = actions.update_role(self.role.pk, changes, expected=expected, caller=self.caller)
        return self.done(f"Changed role {role.name}. The change takes effect at once.", role_url(role.pk))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        unused = list_unused_names(held.permission for held in self.role.held_permissions())
        return super().get_context_data(**{"unused": unused, **kwargs})

    def get_api_body(self) -> dict[str, Any]:
        return {"permissions": [{"name": "UPDATE_FEATURE"}]}


class DeleteRolePage(ConfirmPage):
    api_call = "DELETE /api/admin/roles/{role_id}"

    def role(self) -> Role:
        self.caller.check(Permission.ADMIN)
        return access_role(self.caller, self.kwargs["role_id"])

    def get_breadcrumbs(self) -> Breadcrumbs:
        role = self.role()
        return (ROLES, (role.name, role_url(role.pk)))

    def plan(self) -> dict[str, Any]:
        role = self.role()
        number = role.permissions.count()
        return {
            "title": f"Delete role {role.name}",
            "lead": measure_reach(role).sentence,
            "removed_items": [f"the role {role.name} with its {pluralize(number, 'permission')}"],
            "blocked": describe_blockers(role),
        }

    def act(self) -> tuple[str, str]:
        name = self.role().name
        actions.delete_role(self.kwargs["role_id"], caller=self.caller)
        return f"Deleted role {name}.", reverse("roles")
