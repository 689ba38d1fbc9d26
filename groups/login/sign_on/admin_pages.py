"""/access/people/ID/identity/unlink/: ends the link of somebody's account with the identity provider."""

from typing import Any

from django.conf import settings

from groups.console import ConfirmPage
from groups.login.sign_on.linking import find_identity, unlink_identity_of
from groups.models import User
from groups.people.console import OneAccount


class UnlinkIdentityOf(OneAccount, ConfirmPage):
    def plan(self) -> dict[str, Any]:
        user = self.account()
        identity = find_identity(user)
        refusal = "Unlink your own account on your account's page." if user.pk == self.caller.id else ""
        name = identity["identity"] if identity else ""
        return {
            "title": f"Unlink {user.display_name}",
            "lead": f"{name} of {identity['provider']} no longer logs in as {user}." if identity else "",
            "removed_items": _list_removed(user) if identity else [],
            "kept": _describe_kept(user),
            "button": f"Unlink {name}",
            "cancel": self.url,
            "blocked": refusal or ("" if identity else f"{user.display_name} is not linked."),
        }

    def act(self) -> tuple[str, str]:
        user = unlink_identity_of(self.user_id, caller=self.caller)
        return f"{user} is unlinked.", self.url


def _list_removed(user: User) -> list[str]:
    removed = ["the groups and the root role that the identity provider gave"]
    if not (settings.PASSWORD_LOGIN and user.has_usable_password()):
        removed.append("their only way to log in")
    return removed


def _describe_kept(user: User) -> str:
    sentence = "Their sessions and tokens keep working."
    if settings.OIDC and settings.OIDC.link_by_email and user.email:
        sentence += f" The next login at the identity provider as {user.email} links the account again."
    return sentence
