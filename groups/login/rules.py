"""Rules for passwords and for password logins."""

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError as Refused

from flagadmin.core.errors import InvalidOperation, Problem
from groups.models import User

PASSWORDS_OFF = "Password login is off here. People log in through the identity provider."


def check_passwords_on() -> None:
    """Raises InvalidOperation if the settings turn logging in with passwords off."""
    if not settings.PASSWORD_LOGIN:
        raise InvalidOperation(PASSWORDS_OFF)


def can_use_password(user: User) -> bool:
    """Whether the user has a password and may log in with it. Others use only single sign-on or links."""
    return settings.PASSWORD_LOGIN and user.has_usable_password()


def list_password_problems(password: str, user: User) -> list[Problem]:
    """All problems of the password. It must not resemble the names of ``user``."""
    try:
        validate_password(password, user)
    except Refused as refused:
        return [Problem("password", message) for message in refused.messages]
    return []
