"""Rules for the owner of a flag, a person or a group."""

from collections.abc import Iterator, Mapping
from typing import Any

from flagadmin.core.errors import Problem
from groups.models import Group, User

Columns = dict[str, int | None]


def make_owner_columns(kind: str | None, owner_id: int | None) -> Columns:
    """``owner_user_id`` and ``owner_group_id`` of a flag. ``kind``: "user", "group", or None without an owner."""
    return {f"owner_{each}_id": owner_id if kind == each else None for each in ("user", "group")}


def owner_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields the problems of the owner's columns among the values."""
    user, group = values.get("owner_user_id"), values.get("owner_group_id")
    if user is not None and not User.objects.people().filter(pk=user).exists():
        yield Problem("owner", f"Person with id {user} not found.")
    if group is not None and not Group.objects.filter(pk=group).exists():
        yield Problem("owner", f"Group with id {group} not found.")


def find_remaining_owner(owner: Mapping[str, Any] | None) -> Columns:
    """The columns of a former owner; empty if the person or the group no longer exists."""
    if owner is None:
        return make_owner_columns(None, None)
    columns = make_owner_columns(owner["kind"], owner["id"])
    return make_owner_columns(None, None) if [*owner_problems(columns)] else columns
