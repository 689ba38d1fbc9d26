"""/access/tokens/: list API tokens, create one (its secret is shown once), and revoke one."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponseBase
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.timesince import timesince

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import Column, Filter, curl_with_token
from flagadmin.core.templatetags.moments import SOON
from flagadmin.core.wording import clip
from groups.access import Caller
from groups.console import ConfirmPage, FormPage, ListPage
from groups.models import ApiToken
from groups.one_time_secrets import ShowsSecretOnce
from groups.permissions import Permission
from projects.access import list_projects_with
from projects.connect.snippets import openfeature_snippets, render
from projects.console import api_path, project_url
from projects.models import Environment
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
    create_project_token,
    create_token,
    delete_project_token,
    delete_token,
    read_scope,
)
from projects.tokens.automation import NewAutomation, create_automation, describe_new_scope
from projects.tokens.forms import AUTOMATION, PURPOSE, TokenForm
from projects.tokens.pending import describe_missing

Kind = ApiToken.Kind
CONNECTED = {Kind.BACKEND: "node", Kind.FRONTEND: "browser"}  # where the page of a token leads to
MAX_SCOPE = 600  # letters: what fits into the cookie with the secret
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
    api_call = "GET /api/admin/api-tokens"

    def get_filters(self) -> Sequence[Filter]:
        environments = Environment.objects.values_list("name", flat=True)
        return (
            Filter("q", "Name"),
            Filter("kind", "Kind", KINDS if self.caller.is_admin else KINDS[:-1]),
            Filter("environment", "Environment", [(name, name) for name in environments]),
            Filter("use", "Use", [(key, label) for key, label, _ in USES]),
        )

    def get_rows(self, values: dict[str, str]) -> QuerySet[ApiToken]:
        tokens = read_listed_tokens(self.caller).filter(name__icontains=values["q"])
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

    def get_csv_cells(self, row: ApiToken) -> Sequence[Any]:
        kind = AUTOMATION if row.user else row.kind
        return (row.name, kind, self._describe_scope(row), row.prefix, row.seen_at, row.expires_at)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        tokens = list(kwargs["listing"].rows)
        missing = describe_missing(tokens)
        return super().get_context_data(
            rows=[
                (
                    token,
                    self._describe_scope(token),
                    missing.get(token.pk),
                    self._revoke_url(token),
                )
                for token in tokens
            ],
            may_create=bool(
                find_allowed_kinds(self.caller, "CREATE")
                or list_projects_with(self.caller, Permission.CREATE_PROJECT_API_TOKEN)
            ),
            **kwargs,
        )

    def _describe_scope(self, token: ApiToken) -> str:
        return describe_automation(token.user) if token.user else describe_scope(token, self.caller)

    def _revoke_url(self, token: ApiToken) -> str:
        """The page that revokes the token, "" if the caller may not."""
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
        """A link may choose for the user: ``?type=automation&projects=shop&environment=production``."""
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
    """The page that shows what to do with it in code, "" for an admin token."""
    language = CONNECTED.get(Kind(token.kind))
    if language is None:
        return ""
    project_ids = read_scope(token)
    page = project_url(project_ids[0], "connect") if project_ids else reverse("connect-anywhere")
    query = {"language": language, "environment": str(token.environment_id), "token": str(token.pk)}
    return f"{page}?{urlencode(query)}"


class RevokeTokenPage(ConfirmPage):
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
        when = f"was last used {timesince(used, depth=1)} ago" if used else "was never used"
        return {
            "title": f"Revoke token {token.name}",
            "lead": f"{token.name} {when}. Clients still using it get 401 immediately.",
            "removed_items": [
                f"the {token.kind} token {token.name} ({token.prefix}…): {describe_scope(token, self.caller)}"
            ],
            "button": f"Revoke token {token.name}",
            "cancel": TOKENS[1],
        }

    def act(self) -> tuple[str, str]:
        token = self.token()
        if self.caller.can(find_permission("DELETE", token.kind)):
            delete_token(str(token.pk), caller=self.caller)
        else:
            delete_project_token(read_scope(token)[0], str(token.pk), caller=self.caller)
        return f"Revoked token {token.name}. It no longer works.", reverse("tokens")
