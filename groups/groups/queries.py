"""Reads groups."""

from collections.abc import Sequence

from django.db.models import Count, QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.matching import find_best_matches
from groups.access import Caller
from groups.models import Group
from groups.permissions import ROLE_READERS


def read_groups(caller: Caller) -> QuerySet[Group]:
    """All groups with their members and grants. Raises NoAccess."""
    caller.check_any(ROLE_READERS)
    return Group.objects.prefetch_related("memberships__user", "grants__role")


def access_group(caller: Caller, group_id: int, *, with_members: bool = True) -> Group:
    """Returns the group, by default with its members and grants. Raises NoAccess, NotFound."""
    groups = read_groups(caller) if with_members else read_groups(caller).prefetch_related(None)
    return get_or_404(groups, f"Group with id {group_id} not found.", pk=group_id)


def search_groups(caller: Caller, words: Sequence[str]) -> QuerySet[Group]:
    """Groups with their number of members, as ``size``. Only for callers who may read groups."""
    if not any(map(caller.can, ROLE_READERS)):
        return Group.objects.none()
    sized = Group.objects.annotate(size=Count("memberships"))
    return find_best_matches(sized, words, "name", also=["description"])
