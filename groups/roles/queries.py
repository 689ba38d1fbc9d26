"""Searches roles."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import best_matches
from groups.access import Caller
from groups.models import Role
from groups.roles.actions import READERS


def search_roles(caller: Caller, words: Sequence[str]) -> QuerySet[Role]:
    """Roles, for callers who may read them."""
    if not any(map(caller.can, READERS)):
        return Role.objects.none()
    return best_matches(Role.objects.all(), words, "name", also=["description"])
