"""Changing a password, which logs the account out everywhere else."""

from django.conf import settings
from django.db.models import F

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import (
    AuthenticationRequired,
    InvalidOperation,
    NoAccess,
    ValidationError,
    check_problems,
)
from groups.access import Caller
from groups.login.hashers import encode_foreign
from groups.login.links import end_links
from groups.login.rules import check_passwords_on, list_password_problems
from groups.login.throttle import Attempt, count_attempt, forget_attempts, log_failure
from groups.models import User
from groups.people.personal_tokens import delete_personal_tokens
from groups.permissions import Permission
from groups.sessions.store import delete_sessions


@transactional
def change_password(user: User, password: str, *, caller: Caller) -> None:
    """Sets the password, ends the account's sessions and invalidates its open links.

    Users can change their own password. An admin can change any; this also deletes the account's personal
    tokens, which might be in the wrong hands.

    Raises NoAccess, NotFound, InvalidOperation (a service account has no password; passwords are off),
    ValidationError.
    """
    if caller.id != user.pk:
        caller.check(Permission.ADMIN)
    stored = get_or_404(User.objects.select_for_update(no_key=True), f"Account {user} not found.", pk=user.pk)
    check_passwords_on()
    if stored.is_service:
        raise InvalidOperation(f"{user} is a service account: it has tokens and no password.")
    # A password set with the token would outlive the token.
    if caller.token is not None and caller.id == user.pk and not stored.has_usable_password():
        raise NoAccess(
            "A personal token cannot set a first password. Log in with a one-time link to choose one."
        )
    check_problems(list_password_problems(password, stored))
    user.set_password(password)  # the caller's object is updated too, so that its session can be kept
    stored.password = user.password
    stored.save(update_fields=["password"])
    end_links(stored)
    delete_sessions(stored)
    if caller.id != user.pk:
        delete_personal_tokens(stored, caller=caller)
    record(Event(type=EventType.USER_PASSWORD_CHANGED, subject=stored.username), actor=caller)


@transactional
def adopt_password(user: User, hashed: str, *, caller: Caller) -> bool:
    """Gives an account without a password the one that a bcrypt hash of another system stands for.

    Returns whether it has it now. Raises NoAccess.
    """
    caller.check(Permission.ADMIN)
    stored = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    encoded = encode_foreign(hashed)
    if encoded is None or stored.is_service or stored.has_usable_password() or not settings.PASSWORD_LOGIN:
        return False
    stored.password = encoded
    stored.save(update_fields=["password"])
    record(Event(type=EventType.USER_PASSWORD_CHANGED, subject=stored.username), actor=caller)
    return True


def check_own_password(user: User, password: str, *, path: str, address: str) -> None:
    """Raises ValidationError if the password is wrong, or TooManyRequests after too many attempts."""
    attempt = Attempt.of(user, user.username, address)
    count_attempt(attempt)
    if not user.check_password(password):
        log_failure(address, f"wrong password of {user}, who is logged in")
        raise ValidationError.at(path, "The current password is wrong.")
    forget_attempts(attempt)


@transactional
def log_out_everywhere(user: User, *, caller: Caller) -> None:
    """Ends all sessions of the account. Its tokens stay valid."""
    if caller.id != user.pk:
        caller.check(Permission.ADMIN)
    if not User.objects.filter(pk=user.pk).update(session_generation=F("session_generation") + 1):
        raise AuthenticationRequired
    user.refresh_from_db(fields=["session_generation"])
    delete_sessions(user)
    record(Event(type=EventType.USER_LOGGED_OUT_EVERYWHERE, subject=user.username), actor=caller)
