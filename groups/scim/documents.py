"""Accounts and groups as SCIM resources."""

from typing import Any

from scim2_models import Meta

from groups.models import Group as GroupRow
from groups.models import User as UserRow
from groups.scim.resources import Email, Group, Member, Name, User

WORK = "work"


def make_user_resource(user: UserRow, base: str) -> User:
    """``base``: the address of the service."""
    parts = user.scim_name or {}
    name = Name(
        formatted=user.name or None, given_name=parts.get("givenName"), family_name=parts.get("familyName")
    )
    return User(
        id=str(user.pk),
        external_id=user.external_id,
        user_name=user.username,
        name=name if any((user.name, *parts.values())) else None,
        display_name=user.name or None,
        emails=[Email(value=user.email, type=WORK, primary=True)] if user.email else None,
        active=user.is_active,
        meta=_make_meta(user, "User", base),
    )


def group_resource(group: GroupRow, base: str, *, with_members: bool) -> Group:
    """Makes a group's resource. With members, their accounts must be fetched with the group."""
    members = [
        Member(value=str(membership.user_id), display=membership.user.username)
        for membership in (group.memberships.all() if with_members else ())
    ]
    return Group(
        id=str(group.pk),
        external_id=group.external_id,
        display_name=group.name,
        members=members or None,
        meta=_make_meta(group, "Group", base),
    )


def _make_meta(row: Any, kind: str, base: str) -> Meta:
    return Meta(resource_type=kind, created=row.created_at, location=f"{base}/{kind}s/{row.pk}")
