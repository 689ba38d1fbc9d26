"""Pages of members: the roles in a project, inviting a person to it, and one role with its holders."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpResponseBase
from django.urls import reverse_lazy
from django.utils.functional import cached_property

from flagadmin.core.errors import InvalidOperation
from flagadmin.core.http.fields import read_id
from groups.access import missing
from groups.console import ActionPage, Breadcrumbs, Column, Filter, FormPage, ListPage
from groups.models import Grant, Group, Role, User
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.console import describe_first_login, describe_link
from groups.permissions import ROLE_READERS, BuiltIn, Permission, Scope
from groups.roles.actions import access_role, describe_blockers
from groups.roles.holders import Holder, count_holders, measure_reach, read_holders
from groups.roles.subjects import SUBJECTS, list_unused_names
from projects.access import access_project
from projects.console import InProjectPage, get_project_breadcrumbs, project_url
from projects.flags.lists.queries import list_environment_names
from projects.members.actions import (
    WRITE_PERMISSIONS,
    Holders,
    Invitation,
    Invited,
    check_may_write,
    invite,
    list_grantable_roles,
    mail_invitation,
    remove_role,
)
from projects.members.queries import describe_environments_of_roles, read_role_usage, suggest_holders
from projects.models import Project
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
    noun = "role,roles"
    none_yet = "No roles granted in this project yet."
    columns = (
        Column("who", "Who", by=("holder", "role__name"), cell='{% include "members/holder.html" %}'),
        Column("kind", "Kind"),
        Column(
            "role",
            "Role",
            by=("role__name", "holder"),
            cell='{% include "includes/role_name.html" with role=row.role %}',
        ),
        Column("environments", "Environments", value="places", shown='default:"none"'),
        Column("since", "Since", by=("created_at",), shown="day", css="short"),
        Column("", "Actions", cell='{% include "members/revoke.html" %}'),
    )
    title = "Access"
    csv_name = "{project_id}-access"
    api_call = "GET /api/admin/projects/{project_id}/access"

    def find(self) -> None:
        super().find()
        self.may_write = any(self.caller.can(each, project=self.project.pk) for each in WRITE_PERMISSIONS)
        self.offered = self.may_write and self.project.archived_at is None

    def get_columns(self) -> Sequence[Column]:
        return self.columns if self.offered else self.columns[:-1]

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

    def complete(self, rows: list[Any]) -> list[Any]:
        for row in rows:
            row.kind = "group" if row.group_id else "service account" if row.user.is_service else "person"
            row.places = self.places.get(row.role_id, "")
        return rows

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        project = self.project
        return super().get_context_data(
            **make_project_head(project, "project-access", caller=self.caller),
            may_write=self.offered,
            why_not=self.why_not(),
            root_admins=User.objects.active().filter(root_role=BuiltIn.ADMIN).count(),
            **kwargs,
        )

    def why_not(self) -> str:
        if not self.may_write:
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


class InviteForm(forms.Form):
    who = forms.CharField(
        label="Email address, user name or group",
        max_length=255,
        help_text="An unknown email address gets an account that can only see this project.",
        widget=forms.TextInput(
            attrs={
                "list": "known",
                "autocomplete": "off",
                "autocapitalize": "none",
                "spellcheck": "false",
                "autofocus": True,
            }
        ),
    )
    name = forms.CharField(label="Full name", required=False, max_length=255, help_text="For a new account.")
    role = forms.TypedChoiceField(
        coerce=int, help_text="You can only grant roles whose permissions you hold."
    )
    environments = forms.MultipleChoiceField(
        label="Only in these environments",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="All environments if none is selected. A limited role leaves out what reaches every environment: "
        "archiving, dependencies, API tokens and settings.",
    )

    def __init__(
        self, *args: Any, roles: list[tuple[int, str]], environments: list[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        fields["role"].choices = roles
        fields["environments"].choices = [(name, name) for name in environments]


class InvitePage(ShowsSecretOnce, FormPage):
    title = "Invite to {page.project.name}"
    template_name = "members/invite.html"
    form_class = InviteForm
    initial = {"role": BuiltIn.MEMBER.value}
    problem_fields = {"email": "who", "username": "who"}
    api_call = "POST /api/admin/projects/{project_id}/access/invite"
    api_example = {"who": "ada@example.org", "role": BuiltIn.MEMBER.value, "environments": ["development"]}

    @cached_property
    def project(self) -> Project:
        return access_project(self.caller, self.kwargs["project_id"])

    @property
    def url(self) -> str:
        return project_url(self.project.pk, "project-access")

    def find(self) -> None:
        check_may_write(self.caller, self.project.pk)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (*get_project_breadcrumbs(self.project), ("Access", self.url))

    def get_form_kwargs(self) -> dict[str, Any]:
        roles = [(role.pk, role.name) for role in list_grantable_roles(self.caller, self.project.pk)]
        return super().get_form_kwargs() | {
            "roles": roles,
            "environments": list_environment_names(self.project),
        }

    def submit(self, form: Any) -> str:
        invited = invite(self.project.pk, Invitation(**form.cleaned_data), caller=self.caller)
        if invited.link and not mail_invitation(invited, self.project, caller=self.caller):
            self.created = self.describe(invited)
            return self.url
        if invited.link:
            messages.success(
                self.request, f"Invited {invited.holder}. The link to choose a password was sent."
            )
            return self.url
        done = f"Granted {invited.role} to {invited.holder} in {self.project.pk}."
        return self.done(f"{done} {describe_first_login()}" if invited.is_new else done, self.url)

    def describe(self, invited: Invited) -> dict[str, str]:
        assert not isinstance(invited.holder, Group)  # only people get a link
        described = describe_link(self.request, invited.holder, invited.link, back=self.url)
        return described | {
            "lead": f"{described['lead']} They have the role {invited.role} in {self.project.name}."
        }

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        self.template_name = "people/account_form.html"
        return super().show_secret(created)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"url": self.url, "known": suggest_holders(self.caller), **kwargs})


Subjects = list[tuple[str, list[tuple[str, str, str]]]]
ALL = "all environments"


class UsedIn:
    """A project that uses the role, with its counts."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.project: str = record["project"]
        self.users: int = record["userCount"]
        self.services: int = record["serviceAccountCount"]
        self.groups: int = record["groupCount"]
        self.disabled: int = record.get("disabledCount", 0)
        self.url = project_url(self.project, "project-access")


BY_PROJECT = (
    Column(
        "project",
        "Project",
        by=("project",),
        cell='<a href="{{ row.url }}">{{ row.project }}</a>{% if row.disabled %}<small class="below">'
        "{{ row.disabled|grouped }} disabled</small>{% endif %}",
    ),
    Column("users", "Users", by=("users", "project"), numeric=True),
    Column("services", "Service accounts", by=("services", "project"), numeric=True),
    Column("groups", "Groups", by=("groups", "project"), numeric=True),
)
BY_HOLDER = (
    Column(
        "name",
        "Held by",
        by=("sort_name", "project"),
        value="name",
        cell='{% include "members/role_holder.html" %}',
    ),
    Column(
        "kind",
        "Kind",
        by=("kind", "sort_name"),
        cell='{{ row.kind }}{% if row.is_disabled %} <span class="pill line">disabled</span>{% endif %}',
    ),
    Column(
        "project",
        "Where",
        by=("project", "sort_name"),
        cell='{% if row.project %}<a href="{% url "project-access" row.project %}">{{ row.project }}</a>'
        "{% else %}everywhere{% endif %}",
    ),
    Column("since", "Since", by=("since",), cell="{% if row.since %}{{ row.since|day }}{% endif %}"),
)


class RolePage(ListPage):
    """Lists the projects that use the role, or (``?by=holder``) its holders. A root role has holders."""

    title = "{page.role.name}"
    template_name = "members/role.html"
    none_yet = "Nobody has this role yet."
    keeps_bar = False
    parents = (("Roles", reverse_lazy("roles")),)
    api_call = "GET /api/admin/projects/roles/{role_id}/access"

    def find(self) -> None:
        self.caller.check_any(ROLE_READERS)
        self.role = access_role(self.caller, self.kwargs["role_id"])
        self.by_holder = self.role.is_root or self.request.GET.get("by") == "holder"
        self.columns = BY_HOLDER if self.by_holder else BY_PROJECT
        self.default_sort = self.columns[0].key
        self.noun = "holder,holders" if self.by_holder else "project,projects"
        self.csv_name = f"role-{self.role.pk}-{'holders' if self.by_holder else 'projects'}"

    def get_filters(self) -> Sequence[Filter]:
        return (Filter("q", "Name" if self.by_holder else "Project"),)

    def get_rows(self, values: dict[str, str]) -> list[UsedIn] | list[Holder]:
        if self.by_holder:
            return read_holders(self.role, self.caller, values["q"])
        text = values["q"].casefold()
        records = read_role_usage(self.role.pk, self.caller)
        return [UsedIn(each) for each in records if text in each["project"].casefold()]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        role, use = self.role, count_holders(self.role, self.caller)
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
