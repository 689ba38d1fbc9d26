"""Reads groups."""

from django.db.models import Prefetch, Q, QuerySet

from flagadmin.core.db.lookups import get_or_404
from groups.access import Caller
from groups.models import Grant, Group
from groups.permissions import ROLE_READERS


def read_groups(caller: Caller) -> QuerySet[Group]:
    """All groups with their members and their grants in projects that the caller may read. Raises NoAccess."""
    caller.check_any(ROLE_READERS)
    grants = Grant.objects.filter(caller.match_readable("project")).select_related("role")
    return Group.objects.prefetch_related("memberships__user", Prefetch("grants", grants))


def find_offered_groups(caller: Caller) -> QuerySet[Group]:
    """The groups whose names the caller may see: all, or their own and those with a role in a project they read."""
    if any(map(caller.can, ROLE_READERS)) or caller.reads_installation:
        return Group.objects.all()
    own = Q(memberships__user=caller.id or 0) | Q(grants__project__in=caller.rights.projects)
    return Group.objects.filter(pk__in=Group.objects.filter(own).values("pk"))


def access_group(caller: Caller, group_id: int, *, with_members: bool = True) -> Group:
    """Returns the group, by default with its members and grants. Raises NoAccess, NotFound."""
    groups = read_groups(caller) if with_members else read_groups(caller).prefetch_related(None)
    return get_or_404(groups, f"Group with id {group_id} not found.", pk=group_id)
