"""The base classes of pages about one account, the choices in their forms, and the text about first logins."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import InvalidOperation, NotFound
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.console import Breadcrumbs, ConsolePage
from groups.login.links import INVITE_LIFETIME, is_mail_on, make_absolute_url
from groups.models import Role, User
from groups.people.queries import access_account


class Kind:
    """A mixin with the names and URLs of the page's kind of account. The defaults are for users.

    ``as_view(**SERVICE)`` makes a page show service accounts.
    """

    is_service = False
    plural = "People"
    singular = "person"
    counted = "person,people"
    list_name, url_name = "people", "person"
    api = "/api/admin/user-admin"

    @property
    def home(self) -> str:
        return reverse(self.list_name)


PEOPLE: dict[str, Any] = {"list_name": Kind.list_name, "url_name": Kind.url_name}


SERVICE: dict[str, Any] = {
    "is_service": True,
    "plural": "Service accounts",
    "singular": "service account",
    "counted": "service account,service accounts",
    "list_name": "service-accounts",
    "url_name": "service-account",
    "api": "/api/admin/service-account",
}


class OneAccount(Kind, ConsolePage):
    """A page about one account."""

    @property
    def user_id(self) -> int:
        return self.kwargs["user_id"]

    @property
    def url(self) -> str:
        return reverse(self.url_name, args=[self.user_id])

    def account(self) -> User:
        return access_account(self.caller, self.user_id, is_service=self.is_service)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return ((self.plural, self.home), (self.account().display_name, self.url))


class OwnPage(ConsolePage):
    """A page about the logged-in user."""

    parents = (("Your account", reverse_lazy("account")),)

    @property
    def user(self) -> User:
        if self.caller.user is None:  # narrows the type: a session always has a user
            raise NotFound
        return self.caller.user


def list_root_role_choices() -> list[tuple[str, str]]:
    return [("", "none")] + [(str(role.pk), role.name) for role in Role.objects.root()]


def suggest_accounts() -> list[tuple[str, str]]:
    """(user name, display name) of up to MAX_OPTIONS active accounts, as suggestions for a text input."""
    users = User.objects.active().order_by("username")
    return [(user.username, user.name) for user in users[:MAX_OPTIONS]]


def find_account_by_name(text: str) -> User:
    """The account with this user name or email address, ignoring case. Raises InvalidOperation."""
    name = text.strip()
    if not name:
        raise InvalidOperation("Enter a user name or an email address.")
    user = User.objects.known_as(name).first()
    if user is None:
        raise InvalidOperation(f"Account {name} not found.")
    return user


LINKED_BY_EMAIL = "Their first login through the identity provider is linked by it."


def links_by_email() -> bool:
    return bool(settings.SIGN_ON and settings.SIGN_ON.link_by_email)


def describe_first_login() -> str:
    """Describes the first login to a new account while password login is off."""
    if links_by_email():
        return (
            "The first login through the identity provider with this email address is linked to this account."
        )
    setting = f"{settings.SIGN_ON.prefix}LINK_BY_EMAIL" if settings.SIGN_ON else ""
    return f"It has no login yet: linking by email address is off ({setting})."


def describe_link(request: HttpRequest, user: User, link: str, *, back: str) -> dict[str, str]:
    """The template variables of the page that shows a one-time link."""
    hours = int(INVITE_LIFETIME.total_seconds() // 3600)
    unsent = "The email could not be sent. " if is_mail_on() and user.email else ""
    lead = f"{unsent}Send this link to {user.display_name}. It lets them set a password, once, within {hours} hours."
    return {
        "title": f"Link for {user}",
        "secret": make_absolute_url(request, link),
        "back": back,
        "lead": lead,
    }
