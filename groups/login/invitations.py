"""One-time links that let a user choose a password, for the first time or after a reset."""

from threading import Thread
from urllib.parse import urlencode

from django.urls import reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NotFound, check_problems
from groups.access import Caller
from groups.login.links import (
    INVITE_LIFETIME,
    RESET,
    create_login_link,
    create_reset_link,
    end_links,
    find_link,
    use_login_link,
)
from groups.login.mail import is_mail_on, send_reset
from groups.login.passwords import change_password
from groups.login.rules import check_passwords_on, list_password_problems
from groups.login.throttle import Attempt, count_attempt
from groups.models import User
from groups.people.personal_tokens import delete_personal_tokens
from groups.permissions import Permission
from groups.sessions.store import delete_sessions

NEXT = reverse_lazy("account-password")
NO_MAIL = "This server sends no email. Ask an admin for a link to a new password."


def create_first_link(user: User, *, then: str = "/") -> str:
    """The path of a one-time link for a new person: to their first password, and on to the page ``then``."""
    return create_login_link(user, f"{NEXT}?{urlencode({'next': then})}", lifetime=INVITE_LIFETIME)


@transactional
def reset_password(user_id: int, *, caller: Caller) -> str:
    """Resets the password and returns the path of a one-time link for choosing a new one.

    The old password, open links, sessions and personal tokens stop working.
    Raises NoAccess, NotFound, InvalidOperation (the caller's own account, a disabled account; passwords are
    off).
    """
    caller.check(Permission.ADMIN)
    check_passwords_on()
    people = User.objects.select_for_update(no_key=True).people()
    user = get_or_404(people, f"Person with id {user_id} not found.", pk=user_id)
    if user.pk == caller.id:
        raise InvalidOperation("Change your own password on your account's page.")
    if not user.is_active:
        raise InvalidOperation(f"{user} is disabled. Enable the account first.")
    user.set_unusable_password()
    user.save(update_fields=["password"])
    end_links(user)
    delete_sessions(user)
    delete_personal_tokens(user, caller=caller)
    record(Event(type=EventType.USER_PASSWORD_CHANGED, subject=user.username), actor=caller)
    return create_login_link(user, str(NEXT), lifetime=INVITE_LIFETIME)


def request_reset(name: str, *, address: str) -> None:
    """Sends the person with this user name or email address a link to a new password, if there is one with an address.

    In a thread of its own: how long it takes would tell who has an account. Raises InvalidOperation (no e-mail is sent
    here; passwords are off), TooManyRequests.
    """
    check_passwords_on()
    if not is_mail_on():
        raise InvalidOperation(NO_MAIL)
    user = User.objects.named(name.strip())
    count_attempt(Attempt.of_reset(user, name, address))
    if user is not None and user.is_active and user.email:
        path = create_reset_link(user)
        Thread(target=send_reset, args=(user, path), kwargs={"hours": "an hour"}, daemon=True).start()


def find_invited_user(token: str) -> User:
    """Finds the user whose password the link is for. Does not use it up.

    Raises NotFound, InvalidOperation (it only logs in: its user has a password; passwords are off).
    """
    user = find_link(token).user
    if user is None:
        raise NotFound("This link is for the first account. Open it in a browser.")
    if user.has_usable_password() and not token.startswith(RESET):
        raise InvalidOperation(f"{user} has a password. Change it on the account page after logging in.")
    return user


@transactional
def choose_password(token: str, password: str) -> None:
    """Uses up the link and sets the password. A password that is refused leaves the link as it is.

    Raises NotFound, InvalidOperation, ValidationError.
    """
    check_problems(list_password_problems(password, find_invited_user(token)))
    user, _ = use_login_link(token)
    change_password(user, password, caller=Caller(user=user))
