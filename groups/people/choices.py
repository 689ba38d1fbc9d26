"""Choices in the forms of the access pages: root roles, and accounts by name."""

from flagadmin.core.errors import InvalidOperation
from flagadmin.core.lists.pages import MAX_OPTIONS
from groups.models import Role, User


def list_root_role_choices() -> list[tuple[str, str]]:
    return [("", "none")] + [(str(role.pk), role.name) for role in Role.objects.root()]


def suggest_accounts() -> list[tuple[str, str]]:
    """(user name, display name) of up to MAX_OPTIONS active accounts, as suggestions for a text input."""
    users = User.objects.active().order_by("username")
    return [(user.username, user.name) for user in users[:MAX_OPTIONS]]


def find_account_by_name(text: str) -> User:
    """The account with this user name or email address, ignoring case. Raises InvalidOperation."""
    name = text.strip()
    if not name:
        raise InvalidOperation("Enter a user name or an email address.")
    user = User.objects.known_as(name).first()
    if user is None:
        raise InvalidOperation(f"Account {name} not found.")
    return user
