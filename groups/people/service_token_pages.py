"""Pages that create a token for a service account, show it once, and revoke it."""

from datetime import UTC, datetime, time
from typing import Any

from django.urls import reverse
from django.utils.timesince import timesince

from flagadmin.core.errors import NotFound, ValidationError
from flagadmin.core.lists.pages import curl_for, curl_with_token
from groups.console import ConfirmPage, ConsolePage, Crumbs, FormPage
from groups.models import ApiToken, User
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.console import SERVICE
from groups.people.own_account_pages import TokenForm
from groups.people.personal_tokens import create_personal_token, delete_personal_token, personal_tokens
from groups.people.queries import access_account


class ServicePage(ConsolePage):
    @property
    def user_id(self) -> int:
        return self.kwargs["user_id"]

    @property
    def url(self) -> str:
        return reverse("service-account", args=[self.user_id])

    @property
    def api(self) -> str:
        return f"{SERVICE['api']}/{self.user_id}/token"

    def account(self) -> User:
        return access_account(self.caller, self.user_id, is_service=True)

    def crumbs(self) -> Crumbs:
        return ((SERVICE["plural"], reverse("service-accounts")), (self.account().display_name, self.url))


class NewServiceToken(ShowsSecretOnce, ServicePage, FormPage):
    template_name = "people/service_token_new.html"
    title = "New token"
    form_class = TokenForm

    def submit(self, form: Any) -> str:
        day = form.cleaned_data["expiresAt"]
        expires_at = datetime.combine(day, time.max, UTC) if day else None
        if expires_at is not None and expires_at <= datetime.now(UTC):
            raise ValidationError.at("expiresAt", "Enter a date in the future.")
        account, name = self.account(), form.cleaned_data["description"]
        _, secret = create_personal_token(account, name=name, expires_at=expires_at, caller=self.caller)
        self.created = {
            "secret": secret,
            "command": curl_with_token(self.request, "/api/admin/projects", secret),
            "title": f"New token of {account}",
        }
        return self.url

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"account": self.account(), "back": self.url, **kwargs})

    def curl(self) -> str:
        return curl_for(self.request, "POST", self.api, {"description": "deploy"})


class RevokeServiceToken(ServicePage, ConfirmPage):
    def token(self) -> ApiToken:
        found = [t for t in personal_tokens(self.account()) if t.pk == self.kwargs["token_id"]]
        if not found:
            raise NotFound("Token not found.")
        return found[0]

    def plan(self) -> dict[str, Any]:
        token = self.token()
        when = f"was last used {timesince(token.seen_at, depth=1)} ago" if token.seen_at else "was never used"
        return {
            "title": f"Revoke token {token.name}",
            "lead": f"{token.name} {when}. Clients still using it get 401 immediately.",
            "removed_items": [f"the token {token.name} ({token.prefix}…) of {self.account()}"],
            "button": f"Revoke token {token.name}",
            "cancel": self.url,
        }

    def act(self) -> tuple[str, str]:
        token = self.token()
        delete_personal_token(self.account(), token.pk, caller=self.caller)
        return f"Revoked token {token.name}. It no longer works.", self.url

    def curl(self) -> str:
        return curl_for(self.request, "DELETE", f"{self.api}/{self.kwargs['token_id']}")
