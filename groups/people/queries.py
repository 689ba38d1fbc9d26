"""Searches people and service accounts."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import best_matches
from groups.access import Caller
from groups.models import User


def search_people(caller: Caller, words: Sequence[str]) -> QuerySet[User]:
    """People by name, user name or email address. Only for admins, like the list of people."""
    return _search(caller, User.objects.people(), words)


def search_service_accounts(caller: Caller, words: Sequence[str]) -> QuerySet[User]:
    return _search(caller, User.objects.service_accounts(), words)


def _search(caller: Caller, users: QuerySet[User], words: Sequence[str]) -> QuerySet[User]:
    if not caller.is_admin:
        return users.none()
    return best_matches(users, words, "username", "name", also=["email"], first=["-is_active"])
