"""The form that creates a token: for an SDK, for the admin API, or for a program that changes flags."""

from collections.abc import Mapping
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.access import Caller
from groups.models import ApiToken
from groups.permissions import Permission
from projects.access import list_projects_with
from projects.models import Environment, Project
from projects.tokens.access import find_allowed_kinds
from projects.tokens.actions import NewToken
from projects.tokens.automation import CHANGES, NewAutomation

Kind = ApiToken.Kind
AUTOMATION = "automation"
# The purpose of each kind of token, and a path for a first request with it.
PURPOSE = {
    Kind.BACKEND: ("Backend: SDKs on servers read flags with it", "/api/client/features"),
    Kind.FRONTEND: ("Frontend: browsers and apps evaluate with it", "/api/frontend"),
    Kind.ADMIN: ("Admin: may do everything through the API", "/api/admin/projects"),
}
AUTOMATION_PURPOSE = "Automation: CI and scripts change flags with it, only where you choose"


class TypedIds(forms.TextInput):
    """Ids separated by commas, where there are too many for checkboxes."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [part for text in data.getlist(name) for part in text.replace(",", " ").split()]

    def format_value(self, value: Any) -> str:
        return ", ".join(value or ())


class TokenForm(forms.Form):
    """Projects and environment have no default, so that the scope of a token is always an explicit choice."""

    type = forms.ChoiceField(label="Kind", widget=forms.RadioSelect)
    tokenName = forms.CharField(label="Name", max_length=255, help_text="What will use it: checkout-service.")
    projects = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose the projects this token can access."},
    )
    environment = forms.ChoiceField(
        error_messages={"required": "Choose the environment this token can access."}
    )
    may = forms.MultipleChoiceField(
        label="It may",
        required=False,
        initial=list(CHANGES),
        choices=[(key, words.capitalize()) for key, (words, _) in CHANGES.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text="Creates a service account with a role for exactly this.",
    )
    expiresAt = forms.DateField(
        label="Expires",
        required=False,
        help_text="At the end of that day, UTC. Empty: never.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, caller: Caller, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        anywhere = find_allowed_kinds(caller, "CREATE")
        kinds = anywhere or [Kind.BACKEND, Kind.FRONTEND]
        offered = [(str(kind), words) for kind, (words, _) in PURPOSE.items() if kind in kinds]
        if caller.is_admin:
            offered.insert(2, (AUTOMATION, AUTOMATION_PURPOSE))
        else:
            del self.fields["may"]
        fields: dict[str, Any] = self.fields
        fields["type"].choices = offered
        self._offer_projects(fields["projects"], caller, anywhere=bool(anywhere))
        environments = Environment.objects.filter(enabled=True).values_list("name", flat=True)
        last = [("*", "all environments (admin and automation tokens)")] if Kind.ADMIN in kinds else []
        fields["environment"].choices = [("", "choose one")] + [(name, name) for name in environments] + last

    def _offer_projects(self, field: Any, caller: Caller, *, anywhere: bool) -> None:
        projects = Project.objects.active().readable_by(caller).order_by("name", "id")
        if not anywhere:
            projects = projects.filter(id__in=list_projects_with(caller, Permission.CREATE_PROJECT_API_TOKEN))
            field.help_text = "Choose one: your roles let you create tokens for one project at a time."
        project_choices = [(p.pk, p.name if p.name == p.pk else f"{p.name} ({p.pk})") for p in projects]
        if len(project_choices) > MAX_OPTIONS:
            field.widget = TypedIds(attrs={"autocomplete": "off", "spellcheck": "false"})
            field.help_text = field.help_text or "Project ids, separated by commas. All projects: *"
        every = [("*", "All projects, including future ones")] if anywhere else []
        field.choices = every + project_choices

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        projects, kind = data.get("projects") or [], data.get("type")
        if "*" in projects and len(projects) > 1:
            self.add_error("projects", "Select either all projects or single ones.")
        elif kind == AUTOMATION and "*" in projects:
            self.add_error("projects", "An automation token is for single projects. Select them.")
        elif kind == Kind.ADMIN and projects and projects != ["*"]:
            self.add_error("projects", "An admin token has access to all projects. Select All projects.")
        environment = data.get("environment")
        if kind == Kind.ADMIN and environment and environment != "*":
            self.add_error(
                "environment", "An admin token has access to all environments. Select all environments."
            )
        elif kind in (Kind.BACKEND, Kind.FRONTEND) and environment == "*":
            self.add_error("environment", f"A {kind} token is for one environment.")
        return data

    def expires_at(self) -> datetime | None:
        """Raises ValidationError for a date in the past."""
        day = self.cleaned_data["expiresAt"]
        expires_at = datetime.combine(day, time.max, UTC) if day else None
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError.at("expiresAt", "Enter a date in the future.")
        return expires_at

    def new_token(self) -> NewToken:
        """The token to create. Raises ValidationError."""
        data = self.cleaned_data
        projects = data["projects"]
        return NewToken(
            name=data["tokenName"],
            kind=data["type"],
            projects=None if projects == ["*"] else tuple(projects),
            environment=_read_environment(data),
            expires_at=self.expires_at(),
        )

    def new_automation(self) -> NewAutomation:
        """Returns what to create for a program that changes flags. Raises ValidationError."""
        data = self.cleaned_data
        return NewAutomation(
            name=data["tokenName"].strip(),
            projects=tuple(data["projects"]),
            environment=_read_environment(data),
            may=tuple(data["may"]),
            expires_at=self.expires_at(),
        )


def _read_environment(data: Mapping[str, Any]) -> str | None:
    return None if data["environment"] == "*" else data["environment"]
