"""Describes how a person with a new account logs in for the first time."""

from django.conf import settings
from django.http import HttpRequest

from groups.login.links import INVITE_LIFETIME, make_absolute_url
from groups.login.mail import is_mail_on
from groups.models import User

LINKED_BY_EMAIL = "Their first login through the identity provider is linked by it."


def links_by_email() -> bool:
    return bool(settings.OIDC and settings.OIDC.link_by_email)


def describe_first_login() -> str:
    """Describes how somebody with a new account logs in while password login is off."""
    if links_by_email():
        return (
            "The first login through the identity provider with this email address is linked to this account."
        )
    return "It has no login yet: linking by email address is off (FLAGADMIN_OIDC_LINK_BY_EMAIL)."


def describe_link(request: HttpRequest, user: User, link: str, *, back: str) -> dict[str, str]:
    """The template variables of the page that shows a one-time link."""
    hours = int(INVITE_LIFETIME.total_seconds() // 3600)
    unsent = "The email could not be sent. " if is_mail_on() and user.email else ""
    lead = f"{unsent}Send this link to {user.display_name}. It lets them set a password, once, within {hours} hours."
    return {
        "title": f"Link for {user}",
        "secret": make_absolute_url(request, link),
        "back": back,
        "lead": lead,
    }
