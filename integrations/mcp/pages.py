"""/access/agents/: what agents can do over MCP, a token for one, and when the tokens were last used."""

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

import orjson
from django import forms
from django.db.models import F, Q, QuerySet
from django.http import HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.access import Caller
from groups.console import FormPage
from groups.models import ApiToken, User
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.personal_tokens import create_personal_token, get_own_user
from groups.people.queries import access_account
from integrations.mcp.api import TOOLS, find_server

PLACEHOLDER = "TOKEN"
OWN = "own"  # the visitor's account, among the choices of the form
DEFAULT_LIFETIME = timedelta(days=90)
MAX_TOKENS = 20  # shown, the last used first


class AgentTokenForm(forms.Form):
    account = forms.ChoiceField(label="Acts as", help_text="With exactly the permissions of this account.")
    description = forms.CharField(label="Name", max_length=255)
    expiresAt = forms.DateField(
        label="Expires",
        required=False,
        help_text="At the end of that day, UTC. Leave empty for never.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, accounts: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        listed = accounts[: MAX_OPTIONS + 1]  # the visitor and the first service accounts
        account = self.fields["account"]
        account.choices = listed  # type: ignore[attr-defined]
        if len(accounts) > len(listed):
            more = f"Only the first {MAX_OPTIONS} service accounts are listed."
            account.help_text += f" {more} Create a token for another one on its own page."

    def read_expiry(self) -> datetime | None:
        """Raises ValidationError for a day in the past."""
        day = self.cleaned_data["expiresAt"]
        expires_at = datetime.combine(day, time.max, UTC) if day else None
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError.at("expiresAt", "Enter a date in the future.")
        return expires_at


class AgentsPage(ShowsSecretOnce, FormPage):
    template_name = "integrations/agents.html"
    title = "Agents"
    form_class = AgentTokenForm
    button = "Create token"
    api_call = "POST /api/admin/user/tokens"
    api_example = {"description": "Agent"}
    user: User

    def find(self) -> None:
        self.user = get_own_user(self.caller)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"accounts": self.list_accounts()}

    def list_accounts(self) -> list[tuple[str, str]]:
        """The visitor and, for admins, the service accounts."""
        accounts = [(OWN, f"You ({self.user.display_name})")]
        if self.caller.is_admin:
            services = User.objects.active().filter(is_service=True).order_by("username")[: MAX_OPTIONS + 1]
            accounts += [(str(user.pk), f"{user.display_name} (service account)") for user in services]
        return accounts

    def get_initial(self) -> dict[str, Any]:
        used = set(find_tokens(self.caller, self.user).values_list("name", flat=True))
        names = ("Agent" if number == 1 else f"Agent {number}" for number in range(1, len(used) + 2))
        return {
            "description": next(name for name in names if name not in used),
            "expiresAt": timezone.now().date() + DEFAULT_LIFETIME,
        }

    def submit(self, form: Any) -> str:
        data, user = form.cleaned_data, self.user
        if data["account"] != OWN:
            user = access_account(self.caller, int(data["account"]), is_service=True)
        _, secret = create_personal_token(
            user, name=data["description"], expires_at=form.read_expiry(), caller=self.caller
        )
        self.created = {"secret": secret, "account": user.display_name}
        return reverse("agents")

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        self.find()
        return super().show_secret(created)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        tokens = find_tokens(self.caller, self.user).select_related("user")
        listed = list(tokens.order_by(F("seen_at").desc(nulls_last=True), "-pk")[: MAX_TOKENS + 1])
        tools = [(tool.name, _first_sentence(tool.description), tool.has_dry_run) for tool in TOOLS.values()]
        server = find_server(self.request)
        return super().get_context_data(
            address=server + reverse("mcp"),
            clients=describe_clients(server, kwargs.get("secret", PLACEHOLDER)),
            reading=[(name, text) for name, text, writes in tools if not writes],
            field_groups=[("New token", list(kwargs["form"]))] if "form" in kwargs else [],
            writing=[(name, text) for name, text, writes in tools if writes],
            tokens=listed[:MAX_TOKENS],
            has_more=len(listed) > MAX_TOKENS,
            **kwargs,
        )


def find_tokens(caller: Caller, user: User) -> QuerySet[ApiToken]:
    """The personal tokens of the user and, for admins, of service accounts."""
    whose = Q(user=user) | Q(user__is_service=True) if caller.is_admin else Q(user=user)
    return ApiToken.objects.filter(whose, kind=ApiToken.Kind.PERSONAL)


def describe_clients(server: str, token: str) -> list[tuple[str, str, str]]:
    """How to connect the common clients: (client, file or "Run", text)."""
    url, header = f"{server}{reverse('mcp')}", f"Bearer {token}"
    entry = {"type": "http", "url": url, "headers": {"Authorization": header}}
    add = orjson.dumps({"name": "flags", **entry}).decode()
    gemini = [
        "gemini",
        "mcp",
        "add",
        "--transport",
        "http",
        "--header",
        f"Authorization: {header}",
        "flags",
        url,
    ]
    return [
        ("Most clients", "mcp.json", _indent({"mcpServers": {"flags": entry}})),
        ("VS Code", "Run", f"code --add-mcp {shlex.quote(add)}"),
        ("Gemini CLI", "Run", shlex.join(gemini)),
        (
            "Cursor",
            "~/.cursor/mcp.json",
            _indent({"mcpServers": {"flags": {"url": url, "headers": entry["headers"]}}}),
        ),
    ]


def _indent(document: Mapping[str, Any]) -> str:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".")
