"""/access/tokens/: list API tokens, create one (its secret is shown once), and revoke one."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.timesince import timesince

from flagadmin.console.lists import Column, Filter, curl_for, curl_with_token
from flagadmin.errors import NotFound, ValidationError
from groups.access import Caller
from groups.console import ConfirmPage, Crumbs, FormPage, ListPage
from groups.models import ApiToken
from groups.one_time_secrets import ShowsSecretOnce
from groups.permissions import Permission
from projects.access import projects_with, readable_projects
from projects.models import Environment
from projects.tokens.access import (
    check_any_kind,
    kinds_allowed,
    permission_for,
    scope_words,
    visible_tokens,
)
from projects.tokens.actions import (
    NewToken,
    create_project_token,
    create_token,
    delete_project_token,
    delete_token,
    scope_of,
)

Kind = ApiToken.Kind
TOKENS = ("API tokens", reverse_lazy("tokens"))
# The purpose of each kind of token, and a path for a first request with it.
PURPOSE = {
    Kind.BACKEND: ("Backend: SDKs on servers read flags with it", "/api/client/features"),
    Kind.FRONTEND: ("Frontend: browsers and apps evaluate with it", "/api/frontend"),
    Kind.ADMIN: ("Admin: may do everything through the API", "/api/admin/projects"),
}


def may_revoke(caller: Caller, token: ApiToken) -> bool:
    """Whether the caller may revoke the token, whose ``scopes`` must be prefetched."""
    projects = [scope.project_id for scope in token.scopes.all()]
    return caller.can(permission_for("DELETE", token.kind)) or (
        bool(projects) and all(caller.can(Permission.DELETE_PROJECT_API_TOKEN, project=p) for p in projects)
    )


class TokensPage(ListPage):
    template_name = "tokens/tokens.html"
    title = "API tokens"
    csv_name = "api-tokens"
    default_sort = "name"
    columns = (
        Column("name", "Name", by=("name",)),
        Column("kind", "Kind", by=("kind", "name")),
        Column("scope", "Scope"),
        Column("key", "Token"),
        Column("used", "Last used", by=("seen_at",)),
        Column("expires", "Expires", by=("expires_at",)),
    )

    def get_filters(self) -> Sequence[Filter]:
        environments = Environment.objects.values_list("name", flat=True)
        return (
            Filter("q", "Name"),
            Filter("kind", "Kind", [(kind.value, kind.label) for kind in PURPOSE]),
            Filter("environment", "Environment", [(name, name) for name in environments]),
            Filter("use", "Use", [("never", "never used"), ("expired", "expired")]),
        )

    def rows(self, values: dict[str, str]) -> QuerySet[ApiToken]:
        tokens = visible_tokens(self.caller).prefetch_related("scopes").filter(name__icontains=values["q"])
        if values["kind"]:
            tokens = tokens.filter(kind=values["kind"])
        if values["environment"]:
            tokens = tokens.filter(environment=values["environment"])
        if values["use"] == "never":
            tokens = tokens.filter(seen_at=None)
        elif values["use"] == "expired":
            tokens = tokens.filter(expires_at__lte=timezone.now())
        return tokens

    def csv_cells(self, row: ApiToken) -> Sequence[Any]:
        scope = scope_words(row, self.caller)
        return (row.name, row.kind, scope, row.prefix, row.seen_at, row.expires_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = timezone.now()
        return super().get_context_data(
            rows=[
                (
                    token,
                    scope_words(token, self.caller),
                    token.has_expired(now),
                    may_revoke(self.caller, token),
                )
                for token in kwargs["listing"].rows
            ],
            may_create=bool(
                kinds_allowed(self.caller, "CREATE")
                or projects_with(self.caller, Permission.CREATE_PROJECT_API_TOKEN)
            ),
            **kwargs,
        )

    def curl(self) -> str:
        return curl_for(self.request, "GET", "/api/admin/api-tokens")


class TokenForm(forms.Form):
    """Projects and environment have no default, so that the scope of a token is always an explicit choice."""

    tokenName = forms.CharField(label="Name", max_length=255, help_text="What will use it: checkout-service.")
    type = forms.ChoiceField(label="Kind", widget=forms.RadioSelect)
    projects = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose the projects this token can access."},
    )
    environment = forms.ChoiceField(
        error_messages={"required": "Choose the environment this token can access."}
    )
    expiresAt = forms.DateField(
        label="Expires",
        required=False,
        help_text="At the end of that day, UTC. Empty: never.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, caller: Caller, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        anywhere = kinds_allowed(caller, "CREATE")
        kinds = anywhere or [Kind.BACKEND, Kind.FRONTEND]
        fields["type"].choices = [(kind, words) for kind, (words, _) in PURPOSE.items() if kind in kinds]
        projects = readable_projects(caller).filter(archived_at=None).order_by("name", "id")
        if not anywhere:
            projects = projects.filter(id__in=projects_with(caller, Permission.CREATE_PROJECT_API_TOKEN))
            fields[
                "projects"
            ].help_text = "Choose one: your roles let you create tokens for one project at a time."
        named = [(p.pk, p.name if p.name == p.pk else f"{p.name} ({p.pk})") for p in projects]
        every = [("*", "All projects, including future ones")] if anywhere else []
        fields["projects"].choices = every + named
        environments = Environment.objects.filter(enabled=True).values_list("name", flat=True)
        last = [("*", "all environments (admin tokens only)")] if Kind.ADMIN in kinds else []
        fields["environment"].choices = [("", "choose one")] + [(name, name) for name in environments] + last

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        projects, kind = data.get("projects") or [], data.get("type")
        if "*" in projects and len(projects) > 1:
            self.add_error("projects", "Select either all projects or single ones.")
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

    def new_token(self) -> NewToken:
        """The token to create. Raises ValidationError for an expiry date in the past."""
        data = self.cleaned_data
        day, projects = data["expiresAt"], data["projects"]
        expires_at = datetime.combine(day, time.max, UTC) if day else None
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError.at("expiresAt", "Enter a date in the future.")
        return NewToken(
            name=data["tokenName"],
            kind=data["type"],
            projects=None if projects == ["*"] else tuple(projects),
            environment=None if data["environment"] == "*" else data["environment"],
            expires_at=expires_at,
        )


class NewTokenPage(ShowsSecretOnce, FormPage):
    template_name = "tokens/token_new.html"
    title = "New API token"
    form_class = TokenForm

    def crumbs(self) -> Crumbs:
        return (TOKENS,)

    def find(self) -> None:
        if not projects_with(self.caller, Permission.CREATE_PROJECT_API_TOKEN):
            check_any_kind(self.caller, "CREATE")

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"caller": self.caller}

    def submit(self, form: Any) -> str:
        new = form.new_token()
        if kinds_allowed(self.caller, "CREATE"):
            token, secret = create_token(new, caller=self.caller)
        else:
            if len(new.projects or ()) != 1:
                raise ValidationError.at("projects", "Choose one project.")
            token, secret = create_project_token(new.projects[0], new, caller=self.caller)
        _, first_call = PURPOSE[Kind(token.kind)]
        self.created = {
            "secret": secret,
            "command": curl_with_token(self.request, first_call, secret),
            "scope": scope_words(token, self.caller),
            "title": f"New API token {token.name}",
        }
        return reverse("tokens")

    def curl(self) -> str:
        body = {
            "tokenName": "checkout-service",
            "type": "backend",
            "environment": "production",
            "projects": ["default"],
        }
        return curl_for(self.request, "POST", "/api/admin/api-tokens", body)


class RevokeTokenPage(ConfirmPage):
    def crumbs(self) -> Crumbs:
        return (TOKENS,)

    def token(self) -> ApiToken:
        token = visible_tokens(self.caller).filter(pk=self.kwargs["token_id"]).first()
        if token is None:
            raise NotFound("API token not found.")
        if not may_revoke(self.caller, token):
            self.caller.check(permission_for("DELETE", token.kind))
        return token

    def plan(self) -> dict[str, Any]:
        token = self.token()
        used = token.seen_at
        when = f"was last used {timesince(used, depth=1)} ago" if used else "was never used"
        return {
            "title": f"Revoke token {token.name}",
            "lead": f"{token.name} {when}. Clients still using it get 401 immediately.",
            "removed_items": [
                f"the {token.kind} token {token.name} ({token.prefix}…): {scope_words(token, self.caller)}"
            ],
            "button": f"Revoke token {token.name}",
            "cancel": TOKENS[1],
        }

    def act(self) -> tuple[str, str]:
        token = self.token()
        if self.caller.can(permission_for("DELETE", token.kind)):
            delete_token(str(token.pk), caller=self.caller)
        else:
            delete_project_token(scope_of(token)[0], str(token.pk), caller=self.caller)
        return f"Revoked token {token.name}. It no longer works.", reverse("tokens")

    def curl(self) -> str:
        return curl_for(self.request, "DELETE", f"/api/admin/api-tokens/{self.kwargs['token_id']}")
