"""/projects/ID/access/invite/: grants a role to a person or a group, and invites somebody new with a one-time link."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseBase
from django.utils.functional import cached_property

from groups.console import Breadcrumbs, FormPage
from groups.models import Group
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.first_login import describe_first_login, describe_link
from groups.permissions import BuiltIn
from projects.access import access_project
from projects.console import get_project_breadcrumbs, project_url
from projects.flags.lists.queries import list_environment_names
from projects.members.actions import check_may_write, list_grantable_roles
from projects.members.holders import suggest_holders
from projects.members.invite import Invitation, Invited, invite, mail_invitation
from projects.models import Project


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
    role = forms.TypedChoiceField(coerce=int, help_text="Those whose permissions you have.")
    environments = forms.MultipleChoiceField(
        label="Only in these environments",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: all environments. A limited role leaves out what reaches every environment: "
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

    def get_title(self) -> str:
        return f"Invite to {self.project.name}"

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
        messages.success(self.request, f"{done} {describe_first_login()}" if invited.is_new else done)
        return self.url

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
        return super().get_context_data(**{"url": self.url, "known": suggest_holders(), **kwargs})
