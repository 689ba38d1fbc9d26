"""Searches groups."""

from collections.abc import Sequence

from django.db.models import Count, QuerySet

from flagadmin.core.db.matching import best_matches
from groups.access import Caller
from groups.groups.actions import READERS
from groups.models import Group


def search_groups(caller: Caller, words: Sequence[str]) -> QuerySet[Group]:
    """Groups with their number of members, as ``size``. Only for callers who may read groups."""
    if not any(map(caller.can, READERS)):
        return Group.objects.none()
    sized = Group.objects.annotate(size=Count("memberships"))
    return best_matches(sized, words, "name", also=["description"])
