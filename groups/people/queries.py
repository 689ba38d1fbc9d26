"""Reads people and service accounts."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.matching import find_best_matches
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.ids import is_id
from groups.access import Caller
from groups.models import User
from groups.models.people import UserQuerySet
from groups.permissions import Permission


def read_accounts(caller: Caller, *, is_service: bool) -> QuerySet[User]:
    """All users, or all service accounts. Raises NoAccess."""
    caller.check(Permission.ADMIN)
    return User.objects.filter(is_service=is_service).order_by("id")


def access_account(caller: Caller, user_id: int, *, is_service: bool) -> User:
    """Returns the account. Raises NoAccess, NotFound."""
    caller.check(Permission.ADMIN)
    return find_account(User.objects.all(), user_id, is_service=is_service)


def find_account(users: UserQuerySet, user_id: int, *, is_service: bool) -> User:
    """The account among these. Raises NotFound."""
    kind = "Service account" if is_service else "Person"
    return get_or_404(users, f"{kind} with id {user_id} not found.", pk=user_id, is_service=is_service)


def find_person(caller: Caller, text: str) -> User:
    """The user with this email address, user name or id. Raises NoAccess, ValidationError."""
    caller.check(Permission.ADMIN)
    user = User.objects.named(text.strip())
    if user is None and is_id(text):
        user = User.objects.people().filter(pk=int(text)).first()
    if user is None:
        raise ValidationError.at("id", f"No user has the email address, user name or id {text}.")
    return user


def search_people(caller: Caller, words: Sequence[str]) -> QuerySet[User]:
    """People by name, user name or email address. Only for admins, like the list of people."""
    return _search(caller, User.objects.people(), words)


def search_service_accounts(caller: Caller, words: Sequence[str]) -> QuerySet[User]:
    return _search(caller, User.objects.service_accounts(), words)


def _search(caller: Caller, users: QuerySet[User], words: Sequence[str]) -> QuerySet[User]:
    if not caller.is_admin:
        return users.none()
    return find_best_matches(users, words, "username", "name", also=["email"], first=["-is_active"])
