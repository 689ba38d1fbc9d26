"""Reads roles."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import QuerySet

from flagadmin.core.db.lookups import get_or_404
from groups.access import Caller
from groups.models import Role, RolePermission
from groups.models.roles import HeldPermission
from groups.permissions import ROLE_READERS


def access_role(caller: Caller, role_id: int) -> Role:
    """Returns the role. Raises NoAccess, NotFound."""
    caller.check_any(ROLE_READERS)
    return find_role(Role.objects.all(), role_id)


def find_role(roles: QuerySet[Role], role_id: int) -> Role:
    """The role among these. Raises NotFound."""
    return get_or_404(roles, f"Role with id {role_id} not found.", pk=role_id)


def find_equal_role(permissions: Collection[HeldPermission]) -> Role | None:
    """The oldest project role with exactly these permissions. Two queries."""
    roles = Role.objects.for_projects().order_by("id")
    held_by_role: dict[int, set[HeldPermission]] = defaultdict(set)
    for row in RolePermission.objects.filter(role__in=roles):
        held_by_role[row.role_id].add(row.held)
    return next((role for role in roles if held_by_role[role.pk] == set(permissions)), None)
