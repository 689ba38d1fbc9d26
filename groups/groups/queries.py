"""Reads groups."""

from django.db.models import QuerySet

from flagadmin.core.db.lookups import get_or_404
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
