"""Password login: checks the password, records the result.

Describes how accounts can log in without a second factor or a passkey.
"""

from django.conf import settings
from django.contrib.auth import authenticate
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import AuthenticationRequired
from groups.access import Caller
from groups.login.passwords import Attempt, count_attempt, forget_attempts, log_failure
from groups.login.rules import can_use_password
from groups.login.sign_on.accounts import find_identity
from groups.models import User

WRONG_CREDENTIALS = "Wrong user name or password."


def check_login(name: str, password: str, *, address: str) -> User:
    """The user with this user name or email address, if the password is correct.

    Raises TooManyRequests or AuthenticationRequired. Message and timing do not reveal whether the name or the
    password was wrong.
    """
    attempt = Attempt.of(User.objects.named(name), name, address)
    count_attempt(attempt)
    user = authenticate(username=name, password=password)
    if not isinstance(user, User):
        _record_failure(User.objects.named(name), address)
        raise AuthenticationRequired(WRONG_CREDENTIALS)
    forget_attempts(attempt)
    return user


@transactional
def _record_failure(user: User | None, address: str) -> None:
    """Records a failed login, but never the entered name: some users type their password into the name field.

    Attempts rejected by the throttle are not recorded.
    """
    log_failure(address, f"wrong password of {user}" if user else "unknown name")
    event = Event(
        type=EventType.USER_LOGIN_FAILED,
        subject=user.username if user else "an unknown name",
        after={"address": address},
    )
    record(event, actor=Caller.system())


@transactional
def record_refusal(label: str, reason: str, *, address: str) -> None:
    """Records that a person known to the identity provider was refused."""
    log_failure(address, f"the identity provider's {label}: {reason}")
    after = {"address": address, "how": "provider", "reason": reason}
    record(Event(type=EventType.USER_LOGIN_FAILED, subject=label, after=after), actor=Caller.system())


@transactional
def record_login(user: User, *, how: str) -> None:
    """Records a login. ``how`` is password, link, set-up or provider."""
    User.objects.filter(pk=user.pk).update(seen_at=timezone.now())
    record(
        Event(type=EventType.USER_LOGGED_IN, subject=user.username, after={"how": how}),
        actor=Caller(user=user),
    )


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
