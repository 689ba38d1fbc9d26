"""The base classes of pages about one account: a user, a service account, or the visitor's own."""

from typing import Any

from django.urls import reverse, reverse_lazy

from flagadmin.core.errors import NotFound
from groups.console import Breadcrumbs, ConsolePage
from groups.models import User
from groups.people.queries import access_account


class Kind:
    """A mixin with the names and URLs of the kind of account that a page shows. The defaults are for users.

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
