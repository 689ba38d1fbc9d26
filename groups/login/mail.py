"""Emails with one-time links, where the installation has a mail server."""

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from groups.models import User

log = logging.getLogger("flagadmin.login")

TIMEOUT = 10  # seconds
_INVITATION = """Hello {name},

{by} created a flagadmin account for you{place}. Choose a password with this link, which works once, within 24 hours:

{link}
"""
_RESET = """Hello {name},

choose a new password for flagadmin with this link, which works once, within {hours}:

{link}

If you did not ask for this, ignore this email: your password stays as it is unless somebody uses the link.
"""


def is_mail_on() -> bool:
    """Whether links can be sent. They begin with FLAGADMIN_PUBLIC_URL: the host of a request could be another's."""
    return bool(settings.EMAIL_HOST and settings.PUBLIC_URL)


def send_invitation(user: User, path: str, *, by: str, project: str = "") -> bool:
    """Sends the link to a first password. Returns whether the mail server took it."""
    where = f" ({project})" if project else ""
    return _send(user, path, "Your account in flagadmin", _INVITATION, by=by, place=where)


def send_reset(user: User, path: str, *, hours: str) -> bool:
    """Sends the link to a new password, which works for this many `hours`. Returns whether the mail server took it."""
    return _send(user, path, "A new password for flagadmin", _RESET, hours=hours)


def _send(user: User, path: str, subject: str, text: str, **words: str) -> bool:
    if not is_mail_on() or not user.email:
        return False
    body = text.format(name=user.display_name, link=f"{settings.PUBLIC_URL}{path}", **words)
    mail = EmailMessage(subject, body, to=[user.email], connection=get_connection(timeout=TIMEOUT))
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        log.warning("Email to an account was not sent: %s", error)
        return False
    return True
