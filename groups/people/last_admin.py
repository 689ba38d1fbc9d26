"""Ensures that at least one admin remains, and that admins cannot remove their own Admin role by mistake."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Q, QuerySet

from flagadmin.core.errors import InvalidOperation
from groups.access import Caller
from groups.models import Group, Role, User
from groups.permissions import BuiltIn


def find_admins_who_log_in() -> QuerySet[User]:
    return User.objects.people().active().admins()


def lock_admins() -> None:
    """Locks who holds the Admin role. Call this before locking a user or a group."""
    list(Role.objects.select_for_update(no_key=True).filter(id=BuiltIn.ADMIN))


@contextmanager
def keeping_admins(caller: Caller) -> Iterator[None]:
    """Wraps a change that could take the Admin role from a user. Raises InvalidOperation at its end.

    A lock serializes such changes: if two admins remove each other at once, only one of them succeeds.
    """
    lock_admins()
    before = _read_ids(find_admins_who_log_in())
    with transaction.atomic():
        yield
        _check_admins(before, _read_ids(find_admins_who_log_in()), caller)


def check_admins_without_account(user: User, caller: Caller) -> None:
    """Raises InvalidOperation if the account is the caller's or the last one that holds the Admin role."""
    before = _read_ids(find_admins_who_log_in())
    _check_admins(before, before - {user.pk}, caller)


def check_admins_without_group(group: Group, caller: Caller) -> None:
    """Raises InvalidOperation if the caller or all users would lose the Admin role without the group."""
    other_groups = Group.objects.filter(root_role=BuiltIn.ADMIN).exclude(pk=group.pk)
    remaining = find_admins_who_log_in().filter(Q(root_role=BuiltIn.ADMIN) | Q(groups__in=other_groups))
    _check_admins(_read_ids(find_admins_who_log_in()), _read_ids(remaining), caller)


def _read_ids(users: QuerySet[User]) -> set[int]:
    return set(users.values_list("id", flat=True))


def _check_admins(before: set[int], after: set[int], caller: Caller) -> None:
    if before and not after:
        raise InvalidOperation(
            "Nobody with the Admin role could log in any more. Grant the role to another user first."
        )
    if caller.id in before - after:
        raise InvalidOperation("You would lose the Admin role. Ask another admin to do this.")
