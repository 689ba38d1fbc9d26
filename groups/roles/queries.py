"""Reads roles."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import best_matches
from flagadmin.core.errors import NotFound
from groups.access import Caller
from groups.models import Role
from groups.permissions import ROLE_READERS


def access_role(caller: Caller, role_id: int) -> Role:
    """Returns the role. Raises NoAccess, NotFound."""
    caller.check_any(ROLE_READERS)
    return find_role(Role.objects.all(), role_id)


def find_role(roles: QuerySet[Role], role_id: int) -> Role:
    """The role among these. Raises NotFound."""
    role = roles.filter(pk=role_id).first()
    if role is None:
        raise NotFound(f"Role with id {role_id} not found.")
    return role


def search_roles(caller: Caller, words: Sequence[str]) -> QuerySet[Role]:
    """Roles, for callers who may read them."""
    if not any(map(caller.can, ROLE_READERS)):
        return Role.objects.none()
    return best_matches(Role.objects.all(), words, "name", also=["description"])
