"""One-time links for logging in and for creating the first account, and the emails that contain them.

Only hashes of the links are stored.
"""

import logging
import secrets
import smtplib
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import get_script_prefix, reverse
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NotFound, Problem, check_problems
from flagadmin.core.installation.state import ignore_maintenance
from groups.access import Caller
from groups.login.rules import check_passwords_on, list_password_problems
from groups.models import LoginLink, User
from groups.permissions import BuiltIn
from groups.tokens import hash_secret

PATH = "login/link/"
LIFETIME = timedelta(minutes=15)
INVITE_LIFETIME = timedelta(hours=24)
SETUP_LIFETIME = timedelta(hours=24)
# Links of this kind work even if password login is off: creating one requires shell access.
SHELL = "shell-"
# For people who have forgotten their password: using such a link invalidates the old one.
RESET = "reset-"
RESET_LIFETIME = timedelta(hours=1)
GONE = "This link has already been used or has expired. Ask for a new one."
# An arbitrary lock id. The lock ensures that the first account is created only once.
_SETUP_LOCK = 5_172_032


def make_absolute_url(request: HttpRequest, path: str) -> str:
    """The path as an absolute URL."""
    return settings.PUBLIC_URL + path if settings.PUBLIC_URL else request.build_absolute_uri(path)


def create_login_link(
    user: User, next_path: str = "/", *, lifetime: timedelta = LIFETIME, from_shell: bool = False
) -> str:
    """The path of a new one-time link that logs ``user`` in: ``/login/link/TOKEN/``."""
    return _create(user, next_path, lifetime, prefix=SHELL if from_shell else "")


def create_reset_link(user: User) -> str:
    """The path of a new link that lets ``user`` choose another password."""
    return _create(user, f"{reverse('account-password')}?next=/", RESET_LIFETIME, prefix=RESET)


def create_setup_link() -> str | None:
    """The path of a new link for creating the first account. Deletes older links.

    None if there is an account, or if password login is off.
    """
    if has_people() or not settings.PASSWORD_LOGIN:
        return None
    LoginLink.objects.filter(user=None).delete()
    return _create(None, "/", SETUP_LIFETIME)


def has_people() -> bool:
    return User.objects.people().exists()


def find_link(token: str) -> LoginLink:
    """Returns the link without using it up.

    Raises NotFound if it is unknown, used or expired, and InvalidOperation if password login is off and the link does
    not come from the shell.
    """
    if not token.startswith(SHELL):
        check_passwords_on()
    link = _filter_open_links().select_related("user").filter(token_hash=hash_secret(token)).first()
    if link is None or (link.user is not None and not link.user.is_active):
        raise NotFound(GONE)
    if link.user is None and has_people():
        raise NotFound("An account already exists. Log in, or ask an admin for a link.")
    return link


@transactional
def use_login_link(token: str) -> tuple[User, str]:
    """Uses up the link. Returns its user and the path to redirect to. A reset link invalidates the old password.

    Raises NotFound.
    """
    link = _use(token)
    if link.user is None:
        raise NotFound(GONE)
    if token.startswith(RESET) and link.user.has_usable_password():
        link.user.set_unusable_password()
        link.user.save(update_fields=["password"])
        event = Event(type=EventType.USER_PASSWORD_CHANGED, subject=link.user.username)
        record(event, actor=Caller(user=link.user))
    return link.user, link.next_path


@transactional
def use_setup_link(token: str, *, username: str, password: str) -> User:
    """Uses up the link and creates the first admin account. Raises NotFound, ValidationError."""
    execute("SELECT pg_advisory_xact_lock(%s)", [_SETUP_LOCK])
    if find_link(token).user is not None:
        raise NotFound(GONE)
    user = create_first_admin(username=username, password=password, caller=Caller.system())
    LoginLink.objects.filter(token_hash=hash_secret(token)).update(used_at=timezone.now())
    return user


@transactional
def create_first_admin(*, username: str, password: str, caller: Caller, email: str | None = None) -> User:
    """Creates an account with the root role Admin. Raises ValidationError."""
    ignore_maintenance()
    user = User(username=username.strip(), email=email or None, root_role_id=BuiltIn.ADMIN.value)
    problems = list_password_problems(password, user)
    if not user.username:
        problems.append(Problem("username", "Choose a user name."))
    elif User.objects.known_as(user.username).exists():
        problems.append(Problem("username", f"An account named {user.username} already exists."))
    check_problems(problems)
    user.set_password(password)
    user.save()
    after = {"id": user.pk, "username": user.username, "email": user.email, "rootRole": user.root_role_id}
    record(Event(type=EventType.USER_CREATED, subject=user.username, after=after), actor=caller)
    return user


def end_links(user: User) -> None:
    """Invalidates the account's open login links and invitations."""
    LoginLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())


def forget_old_links() -> None:
    LoginLink.objects.filter(expires_at__lt=timezone.now() - timedelta(days=1)).delete()


def _create(user: User | None, next_path: str, lifetime: timedelta, *, prefix: str = "") -> str:
    token = prefix + secrets.token_urlsafe(32)
    LoginLink.objects.create(
        token_hash=hash_secret(token), user=user, next_path=next_path, expires_at=timezone.now() + lifetime
    )
    # Not reversed: that would load all pages, at the first start and in commands.
    return f"{get_script_prefix()}{PATH}{token}/"


def _use(token: str) -> LoginLink:
    link = find_link(token)
    # If several requests use the link at once, only one of them updates the row.
    if not _filter_open_links().filter(pk=link.pk).update(used_at=timezone.now()):
        raise NotFound(GONE)
    return link


def _filter_open_links() -> QuerySet[LoginLink]:
    return LoginLink.objects.filter(used_at=None, expires_at__gt=timezone.now())


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
    """Whether links can be sent. They begin with FLAGADMIN_PUBLIC_URL, because a request's host could be forged."""
    return bool(settings.EMAIL_HOST and settings.PUBLIC_URL)


def send_invitation(user: User, path: str, *, by: str, project: str = "") -> bool:
    """Sends the link for setting a first password. Returns whether the mail server accepted it."""
    where = f" ({project})" if project else ""
    return _send(user, path, "Your account in flagadmin", _INVITATION, by=by, place=where)


def send_reset(user: User, path: str, *, hours: str) -> bool:
    """Sends the link for setting a new password, valid for `hours`. Returns whether the mail server accepted it."""
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
