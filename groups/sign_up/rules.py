"""Rules for invite links."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from flagadmin.core.errors import Problem
from groups.models import Role
from groups.permissions import BuiltIn, Permission

MAX_LIFETIME = timedelta(days=365)
MAX_USERS = 1_000  # per link, in case it leaks


def problems_of_expiry(expires_at: datetime, *, now: datetime) -> Iterator[Problem]:
    if expires_at <= now:
        yield Problem("expiresAt", "Must be in the future.")
    elif expires_at > now + MAX_LIFETIME:
        yield Problem("expiresAt", f"At most {MAX_LIFETIME.days} days from now.")


def may_be_given(role: Role) -> bool:
    """Whether a link may assign this root role: not if it includes all permissions."""
    return (
        role.is_root
        and role.pk != BuiltIn.ADMIN.value
        and not role.permissions.filter(permission=Permission.ADMIN.value).exists()
    )
