"""/access/tokens/: list API tokens, create one (its secret is shown once), and revoke one."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.timesince import timesince

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import ValidationError, clip
from flagadmin.core.lists.pages import MAX_OPTIONS, Column, Filter, curl_with_token
from flagadmin.core.templatetags.moments import SOON
from groups.console import Caller, ConfirmPage, FormPage, ListPage, Permission
from groups.models import ApiToken
from groups.one_time_secrets import ShowsSecretOnce
from projects.access import list_projects_with
from projects.connect.snippets import openfeature_snippets, render
from projects.console import api_path, project_url
from projects.models import Environment, Project
from projects.tokens.access import (
    check_any_kind,
    describe_automation,
    describe_scope,
    find_allowed_kinds,
    find_permission,
    find_visible_tokens,
    read_listed_tokens,
)
from projects.tokens.actions import (
    CHANGES,
    NewAutomation,
    NewToken,
    create_automation,
    create_project_token,
    create_token,
    delete_project_token,
    delete_token,
    describe_new_scope,
    read_scope,
)
from projects.tokens.pending import describe_missing

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
    """Ids separated by commas, if there are too many for checkboxes."""

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
        help_text="At the end of that day, UTC. Leave empty for never.",
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
            all_projects = " All projects: *" if anywhere and caller.reads_all_projects else ""
            field.help_text = field.help_text or f"Project ids, separated by commas.{all_projects}"
        may_all = anywhere and caller.reads_all_projects
        every = [("*", "All projects, including future ones")] if may_all else []
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
        """The automation to create. Raises ValidationError."""
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


CONNECTED = {Kind.BACKEND: "node", Kind.FRONTEND: "browser"}  # the target of links from the page of a token
MAX_SCOPE = 600  # characters that fit into the cookie with the secret
TOKENS = ("API tokens", reverse_lazy("tokens"))
KINDS = [*((kind.value, kind.label) for kind in PURPOSE), (AUTOMATION, "Automation")]
# The values of the filter by use: key, label, condition.
USES: tuple[tuple[str, str, Callable[[datetime], Q]], ...] = (
    ("never", "never used", lambda now: Q(seen_at=None)),
    ("soon", "expires soon", lambda now: Q(expires_at__gt=now, expires_at__lte=now + SOON)),
    ("expired", "expired", lambda now: Q(expires_at__lte=now)),
    ("pending", "pending", lambda now: Q(pending_scope__isnull=False)),
)


def may_revoke(caller: Caller, token: ApiToken) -> bool:
    """Whether the caller may revoke the token, whose ``scopes`` must be prefetched."""
    projects = [scope.project_id for scope in token.scopes.all()]
    return caller.can(find_permission("DELETE", token.kind)) or (
        bool(projects) and all(caller.can(Permission.DELETE_PROJECT_API_TOKEN, project=p) for p in projects)
    )


class TokensPage(ListPage):
    template_name = "tokens/tokens.html"
    title = "API tokens"
    default_sort = "name"
    noun = "token,tokens"
    none_yet = "No API tokens yet. An SDK needs one to read flags."
    new = ("token-new", "New token")
    columns = (
        Column("name", "Name", by=("name",), cell='<span class="strong">{{ row.name }}</span>'),
        Column(
            "kind",
            "Kind",
            by=("kind", "name"),
            csv=lambda row: AUTOMATION if row.user else row.kind,
            cell='<span class="pill {% if row.kind == "admin" %}warn{% else %}line{% endif %}">'
            "{% if row.user %}Automation{% else %}{{ row.get_kind_display }}{% endif %}</span>",
        ),
        Column("scope", "Scope", value="scope_sentence", cell='{% include "tokens/scope.html" %}'),
        Column("key", "Token", value="prefix", cell="{{ row.prefix }}…", css="mono"),
        Column("used", "Last used", by=("seen_at",), shown="ago"),
        Column("expires", "Expires", by=("expires_at",), shown="expiry"),
        Column(
            "",
            "Actions",
            cell='{% if row.revoke_url %}<a class="btn small" href="{{ row.revoke_url }}">Revoke…'
            '<span class="unseen"> {{ row.name }}</span></a>{% endif %}',
        ),
    )
    api_call = "GET /api/admin/api-tokens"

    def get_filters(self) -> Sequence[Filter]:
        environments = Environment.objects.values_list("name", flat=True)
        return (
            Filter("q", "Name", by=("name",)),
            Filter("kind", "Kind", KINDS if self.caller.is_admin else KINDS[:-1]),
            Filter("environment", "Environment", [(name, name) for name in environments]),
            Filter("use", "Use", [(key, label) for key, label, _ in USES]),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[ApiToken]:
        tokens = read_listed_tokens(self.caller)
        if values["kind"] == AUTOMATION:
            tokens = tokens.filter(kind=Kind.PERSONAL)
        elif values["kind"]:
            tokens = tokens.filter(kind=values["kind"])
        if values["environment"]:
            environment = values["environment"]
            tokens = tokens.filter(Q(environment=environment) | Q(pending_scope__environment=environment))
        if values["use"]:
            tokens = tokens.filter(
                next(is_so(timezone.now()) for key, _, is_so in USES if key == values["use"])
            )
        return tokens

    def complete(self, rows: list[Any]) -> list[Any]:
        missing = describe_missing(rows)
        for token in rows:
            user = token.user
            token.scope_sentence = describe_automation(user) if user else describe_scope(token, self.caller)
            token.missing, token.revoke_url = missing.get(token.pk), self._revoke_url(token)
        return rows

    def may_create(self) -> bool:
        return bool(
            find_allowed_kinds(self.caller, "CREATE")
            or list_projects_with(self.caller, Permission.CREATE_PROJECT_API_TOKEN)
        )

    def get_beginning(self) -> tuple[str, str]:
        return (reverse("connect-anywhere"), "Connect an SDK") if self.may_create() else ("", "")

    def _revoke_url(self, token: ApiToken) -> str:
        """The page that revokes the token; "" without the permission."""
        if token.user:
            return reverse("service-account-token-revoke", args=[token.user_id, token.pk])
        return reverse("token-revoke", args=[token.pk]) if may_revoke(self.caller, token) else ""


class NewTokenPage(ShowsSecretOnce, FormPage):
    template_name = "tokens/token_new.html"
    title = "New API token"
    form_class = TokenForm
    parents = (TOKENS,)
    api_call = "POST /api/admin/api-tokens"
    api_example = {
        "tokenName": "checkout-service",
        "type": "backend",
        "environment": "production",
        "projects": ["default"],
    }

    def find(self) -> None:
        if not list_projects_with(self.caller, Permission.CREATE_PROJECT_API_TOKEN):
            check_any_kind(self.caller, "CREATE")

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"caller": self.caller}

    def get_initial(self) -> dict[str, Any]:
        """A link may preset values: ``?type=automation&projects=shop&environment=production``."""
        query = self.request.GET
        return {
            "type": query.get("type", ""),
            "projects": query.getlist("projects"),
            "environment": query.get("environment", ""),
        }

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        programs = [
            (snippet, render(snippet, url=created["url"], token=created["secret"]))
            for snippet in openfeature_snippets(created.get("kind", ""))
        ]
        context = self.get_context_data(**{"curl": "", "programs": programs, **created})
        return self.render_to_response(context)

    def submit(self, form: Any) -> str:
        if form.cleaned_data["type"] == AUTOMATION:
            return self.submit_automation(form.new_automation())
        new = form.new_token()
        if find_allowed_kinds(self.caller, "CREATE"):
            token, secret = create_token(new, caller=self.caller)
        else:
            if len(new.projects or ()) != 1:
                raise ValidationError.at("projects", "Choose one project.")
            token, secret = create_project_token(new.projects[0], new, caller=self.caller)
        _, first_call = PURPOSE[Kind(token.kind)]
        self.created = {
            "secret": secret,
            "kind": token.kind,
            "url": self.request.build_absolute_uri("/").rstrip("/"),
            "command": curl_with_token(self.request, first_call, secret),
            "scope": f"It has access to {clip(describe_scope(token, self.caller), MAX_SCOPE)}.",
            "title": f"New API token {token.name}",
            "connect_url": _connect_url(token),
            "back": reverse("tokens"),
        }
        return reverse("tokens")

    def submit_automation(self, new: NewAutomation) -> str:
        token, secret = create_automation(new, caller=self.caller)
        self.created = {
            "secret": secret,
            "command": curl_with_token(self.request, f"{api_path(new.projects[0])}/features", secret),
            "scope": f"{clip(describe_new_scope(new), MAX_SCOPE)} It changes nothing else.",
            "title": f"New automation token {token.name}",
            "back": reverse("service-account", args=[token.user_id]),
        }
        return self.created["back"]


def _connect_url(token: ApiToken) -> str:
    """The page about using it in code; "" for an admin token."""
    language = CONNECTED.get(Kind(token.kind))
    if language is None:
        return ""
    project_ids = read_scope(token)
    page = project_url(project_ids[0], "connect") if project_ids else reverse("connect-anywhere")
    query = {"language": language, "environment": str(token.environment_id), "token": str(token.pk)}
    return f"{page}?{urlencode(query)}"


class RevokeTokenPage(ConfirmPage):
    asks_why = True
    parents = (TOKENS,)
    api_call = "DELETE /api/admin/api-tokens/{token_id}"

    def token(self) -> ApiToken:
        token = get_or_404(
            find_visible_tokens(self.caller), "API token not found.", pk=self.kwargs["token_id"]
        )
        if not may_revoke(self.caller, token):
            self.caller.check(find_permission("DELETE", token.kind))
        return token

    def plan(self) -> dict[str, Any]:
        token = self.token()
        used = token.seen_at
        if used:
            when = timesince(used, depth=1)
            lead = f"{token.name} was last used {when} ago. Clients still using it get 401 immediately."
        else:
            lead = f"{token.name} has never been used."
        return {
            "title": f"Revoke token {token.name}",
            "lead": lead,
            "removed_items": [
                f"the {token.kind} token {token.name} ({token.prefix}…): {describe_scope(token, self.caller)}"
            ],
        }

    def act(self) -> tuple[str, str]:
        token = self.token()
        if self.caller.can(find_permission("DELETE", token.kind)):
            delete_token(str(token.pk), caller=self.caller)
        else:
            delete_project_token(read_scope(token)[0], str(token.pk), caller=self.caller)
        return f"Revoked token {token.name}. It no longer works.", reverse("tokens")
