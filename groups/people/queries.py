"""Reads people and service accounts."""

from django.db.models import QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import is_id
from groups.access import Caller, Permission
from groups.models import User
from groups.models.people import UserQuerySet


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
