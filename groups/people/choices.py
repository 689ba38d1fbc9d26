"""Choices in the forms of the access pages: root roles, and accounts by name."""

from django.db.models import Q

from flagadmin.core.errors import InvalidOperation
from groups.models import User
from groups.roles.root_roles import root_roles

OFFERED = 200


def root_role_choices() -> list[tuple[str, str]]:
    return [("", "none")] + [(str(role.pk), role.name) for role in root_roles()]


def known_accounts() -> list[tuple[str, str]]:
    """(user name, display name) of up to OFFERED active accounts, as suggestions for a text input."""
    users = User.objects.filter(is_active=True).order_by("username")
    return [(user.username, user.name) for user in users[:OFFERED]]


def found_account(text: str) -> User:
    """The account with this user name or email address, ignoring case. Raises InvalidOperation."""
    name = text.strip()
    if not name:
        raise InvalidOperation("Enter a user name or an email address.")
    by_name = User.objects.filter(Q(username__iexact=name) | Q(email__iexact=name))
    user = by_name.order_by("id").first()
    if user is None:
        raise InvalidOperation(f"Account {name} not found.")
    return user
