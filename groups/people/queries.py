"""Searches people and service accounts."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import best_matches
from groups.access import Caller
from groups.models import User


def search_people(caller: Caller, words: Sequence[str]) -> QuerySet[User]:
    """People by name, user name or email address. Only for admins, like the list of people."""
    return _accounts(caller, words, is_service=False)


def search_service_accounts(caller: Caller, words: Sequence[str]) -> QuerySet[User]:
    return _accounts(caller, words, is_service=True)


def _accounts(caller: Caller, words: Sequence[str], *, is_service: bool) -> QuerySet[User]:
    if not caller.is_admin:
        return User.objects.none()
    users = User.objects.filter(is_service=is_service)
    return best_matches(users, words, "username", "name", also=["email"], first=["-is_active"])
