"""/access/…/grant/: grants more to an account or a group, from its own page."""

from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.urls import reverse

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.console import Breadcrumbs, FormPage, Permission
from groups.groups.actions import change_members
from groups.groups.console import OneGroup, group_url
from groups.models import Group, Role, User
from groups.people.actions import update_account
from groups.people.console import OneAccount, list_root_role_choices
from projects.members.actions import Holders, add_roles
from projects.models import Project


class GrantForm(forms.Form):
    """A role in a project, membership of a group, a root role: at least one of them."""

    project = forms.ChoiceField(required=False)
    role = forms.TypedChoiceField(label="Role in the project", required=False, coerce=int, empty_value=None)
    group = forms.ChoiceField(
        required=False, help_text="Members have every role of the group, now and in the future."
    )
    rootRole = forms.TypedChoiceField(label="Root role", required=False, coerce=int, empty_value=None)

    def __init__(self, *args: Any, holder: User | Group, projects: Iterable[Project], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        offer(fields["project"], [(each.pk, _label_project(each)) for each in projects], "A project id")
        roles = Role.objects.for_projects().order_by("id")
        fields["role"].choices = [("", "none"), *roles.values_list("id", "name")]
        if isinstance(holder, Group):
            del fields["group"], fields["rootRole"]
            return
        groups = Group.objects.filter(scim_id=None).exclude(members=holder).order_by("name")
        offer(
            fields["group"], [(name, name) for name in groups.values_list("name", flat=True)], "A group name"
        )
        now = str(holder.root_role) if holder.root_role else "none"
        fields["rootRole"].choices = [("", f"Keep current ({now})"), *list_root_role_choices()[1:]]
        fields["rootRole"].help_text = "Applies to every project; replaces the current root role."

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("project") and data.get("role") is None and "role" not in self.errors:
            self.add_error("role", "Choose the role in this project.")
        if data.get("role") is not None and not data.get("project") and "project" not in self.errors:
            self.add_error("project", "Choose the project for this role.")
        if not self.errors and not any(data.values()):
            self.add_error(None, "Choose what to grant.")
        return data


def offer(field: Any, choices: Sequence[tuple[str, str]], hint: str) -> None:
    """Offers choices in a select, or as suggestions for typing if there are too many."""
    if len(choices) > MAX_OPTIONS:
        field.widget = forms.TextInput(attrs={"placeholder": hint, "autocomplete": "off"})
    field.choices = [("", "none"), *choices]


def _label_project(project: Project) -> str:
    return project.name if project.name == project.pk else f"{project.name} ({project.pk})"


class GrantPage(FormPage):
    """The base class of the pages for accounts and for groups."""

    template_name = "members/grant.html"
    form_class = GrantForm
    kind: str  # "user" or "group"
    holder: Any

    @property
    def url(self) -> str:
        raise NotImplementedError

    def get_title(self) -> str:
        return f"Grant access to {getattr(self.holder, 'display_name', self.holder)}"

    def get_initial(self) -> dict[str, Any]:
        return {"project": self.request.GET.get("project", "")}

    def get_form_kwargs(self) -> dict[str, Any]:
        projects = Project.objects.active().readable_by(self.caller).order_by("name", "id")
        return super().get_form_kwargs() | {"holder": self.holder, "projects": projects}

    def submit(self, form: Any) -> str:
        granted = self.grant(form.cleaned_data)
        return self.done(f"Granted {self.holder}: {', '.join(granted)}.", self.url)

    @transactional
    def grant(self, data: dict[str, Any]) -> list[str]:
        """Grants the choices in one transaction. Returns them in words."""
        granted = []
        if data["project"]:
            holder = Holders(self.kind, (self.holder.pk,))
            add_roles(data["project"], [holder], [data["role"]], caller=self.caller)
            granted.append(f"{Role.objects.get(pk=data['role'])} in {data['project']}")
        if data.get("group"):
            group = Group.objects.filter(name=data["group"]).first()
            if group is None:
                raise ValidationError.at("group", f"Group {data['group']} not found.")
            change_members(group.pk, add=[self.holder.pk], caller=self.caller)
            granted.append(f"membership of {group}")
        if data.get("rootRole"):
            account: User = self.holder
            update_account(
                account.pk, {"root_role": data["rootRole"]}, is_service=account.is_service, caller=self.caller
            )
            granted.append(f"{Role.objects.get(pk=data['rootRole'])} everywhere")
        return granted

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"holder": self.holder, "url": self.url, **kwargs})


class GrantToAccount(OneAccount, GrantPage):
    kind = "user"

    def find(self) -> None:
        self.holder = self.account()


class GrantToGroup(OneGroup, GrantPage):
    kind = "group"

    def find(self) -> None:
        self.caller.check(Permission.ADMIN)
        self.holder = self.group()

    @property
    def url(self) -> str:
        return group_url(self.group_id)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (("Groups", reverse("groups")), (self.holder.name, self.url))
