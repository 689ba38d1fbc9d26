"""Pages that create a token for a service account, show it once, and revoke it."""

from typing import Any

from django.utils.timesince import timesince

from flagadmin.core.errors import NotFound
from flagadmin.core.lists.pages import curl_with_token
from groups.console import ConfirmPage, FormPage
from groups.models import ApiToken
from groups.one_time_secrets import ShowsSecretOnce
from groups.people.console import OneAccount
from groups.people.own_account_pages import TokenForm
from groups.people.personal_tokens import create_personal_token, delete_personal_token, read_personal_tokens


class NewServiceToken(ShowsSecretOnce, OneAccount, FormPage):
    template_name = "people/service_token_new.html"
    title = "New token"
    api_call = "POST {page.api}/{user_id}/token"
    api_example = {"description": "deploy"}
    form_class = TokenForm

    def submit(self, form: Any) -> str:
        account = self.account()
        _, secret = create_personal_token(account, **form.values(), caller=self.caller)
        self.created = {
            "secret": secret,
            "command": curl_with_token(self.request, "/api/admin/projects", secret),
            "title": f"New token of {account}",
        }
        return self.url

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**{"account": self.account(), "back": self.url, **kwargs})


class RevokeServiceToken(OneAccount, ConfirmPage):
    api_call = "DELETE {page.api}/{user_id}/token/{token_id}"

    def token(self) -> ApiToken:
        tokens = [t for t in read_personal_tokens(self.account()) if t.pk == self.kwargs["token_id"]]
        if not tokens:
            raise NotFound("Token not found.")
        return tokens[0]

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
