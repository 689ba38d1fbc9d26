"""Describes how accounts can log in without a second factor or a passkey."""

from django.conf import settings

from groups.login.rules import can_use_password
from groups.login.sign_on.accounts import find_identity
from groups.models import User


def describe_login(user: User, *, password: str = "the password") -> str:
    """``with the password`` or ``through the identity provider``; "" if the user needs a one-time link."""
    if can_use_password(user):
        return f"with {password}"
    return "through the identity provider" if can_sign_on(user) else ""


def can_sign_on(user: User) -> bool:
    """Whether the account is linked with the identity provider, or will be at the first login there."""
    if settings.SIGN_ON is None or user.is_service:
        return False
    return find_identity(user) is not None or (settings.SIGN_ON.link_by_email and bool(user.email))
