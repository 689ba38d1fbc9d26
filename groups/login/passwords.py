"""Sets a password for the first time or after a reset, changes it, and checks hashes from other systems.

Slows down password guessing, per account and per IP address. The wait doubles with each attempt.

An attempt is counted before the password is checked, under a lock, so that parallel attempts cannot bypass the limit.
"""

import hashlib
import ipaddress
import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Thread
from urllib.parse import urlencode

import bcrypt
from django.conf import settings
from django.contrib.auth.hashers import BCryptPasswordHasher
from django.db import connection, transaction
from django.db.models import Count, F, Max, Q
from django.urls import reverse_lazy
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import (
    AuthenticationRequired,
    InvalidOperation,
    NoAccess,
    NotFound,
    TooManyRequests,
    ValidationError,
    check_problems,
)
from groups.access import Caller, Permission
from groups.login.links import (
    INVITE_LIFETIME,
    RESET,
    create_login_link,
    create_reset_link,
    end_links,
    find_link,
    is_mail_on,
    send_reset,
    use_login_link,
)
from groups.login.rules import check_passwords_on, list_password_problems
from groups.models import Custody, LoginFailure, User
from groups.people.personal_tokens import delete_personal_tokens, note_custody
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
        note_custody(stored, Custody.How.PASSWORD, caller=caller)
    record(Event(type=EventType.USER_PASSWORD_CHANGED, subject=stored.username), actor=caller)


@transactional
def adopt_password(user: User, hashed: str, *, caller: Caller) -> bool:
    """Gives an account without a password the one behind another system's bcrypt hash.

    Returns whether the account now has it. Raises NoAccess.
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


NEXT = reverse_lazy("account-password")
NO_MAIL = "This server sends no email. Ask an admin for a link to a new password."


def create_first_link(user: User, *, then: str = "/") -> str:
    """The path of a new person's one-time link, which leads to setting a password and then to the page ``then``."""
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
    note_custody(user, Custody.How.PASSWORD, caller=caller)
    record(Event(type=EventType.USER_PASSWORD_CHANGED, subject=user.username), actor=caller)
    return create_login_link(user, str(NEXT), lifetime=INVITE_LIFETIME)


def request_reset(name: str, *, address: str) -> None:
    """Emails a link for a new password to the person with this user name or email address, if they have an address.

    Runs in a separate thread, because its duration would reveal whether the account exists. Raises InvalidOperation
    (e-mail is off; passwords are off), TooManyRequests.
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
    """Finds the user whose password the link can set. Does not use it up.

    Raises NotFound, InvalidOperation (its user has a password, so the link only logs in; passwords are off).
    """
    user = find_link(token).user
    if user is None:
        raise NotFound("This link is for the first account. Open it in a browser.")
    if user.has_usable_password() and not token.startswith(RESET):
        raise InvalidOperation(f"{user} has a password. Change it on the account page after logging in.")
    return user


@transactional
def choose_password(token: str, password: str) -> None:
    """Uses up the link and sets the password. If the password is refused, the link stays valid.

    Raises NotFound, InvalidOperation, ValidationError.
    """
    check_problems(list_password_problems(password, find_invited_user(token)))
    user, _ = use_login_link(token)
    change_password(user, password, caller=Caller(user=user))


MAX_BYTES = 72
"""bcrypt reads only this much of a password. Other libraries truncate it, ours raises an error."""
_HASH = re.compile(r"\$2[aby]\$(0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}")


class CuttingBcryptHasher(BCryptPasswordHasher):
    def encode(self, password: str, salt: str | bytes) -> str:
        salt = salt.encode() if isinstance(salt, str) else salt
        return f"{self.algorithm}${bcrypt.hashpw(password.encode()[:MAX_BYTES], salt).decode()}"


def encode_foreign(hashed: str) -> str | None:
    """Encodes another system's bcrypt hash in Django's format. None if it is not such a hash, or takes seconds to
    check.
    """
    return f"{CuttingBcryptHasher.algorithm}${hashed}" if _HASH.fullmatch(hashed) else None


log = logging.getLogger("flagadmin.login")

WINDOW = timedelta(minutes=15)
FREE_ATTEMPTS_OF_ACCOUNT = 5
FREE_ATTEMPTS_OF_ADDRESS = 20  # higher, because many users may share an IP address
FIRST_WAIT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The account and IP address of a login attempt.

    Neither contains the entered name, because some users type their password into the name field.
    """

    account: str
    address: str

    @classmethod
    def of(cls, user: User | None, typed_name: str, address: str) -> "Attempt":
        typed = hashlib.sha256(typed_name.strip().casefold().encode()).hexdigest()
        return cls(account=f"user {user.pk}" if user else f"unknown {typed}", address=_get_network(address))

    @classmethod
    def of_reset(cls, user: User | None, typed_name: str, address: str) -> "Attempt":
        """A request for a password reset by e-mail. Counted separately: many requests must not lock the user out."""
        attempt = cls.of(user, typed_name, address)
        return cls(account=f"reset of {attempt.account}", address=f"reset from {attempt.address}"[:64])

    @classmethod
    def with_code(cls, user: User, address: str) -> "Attempt":
        """An attempt at a second factor. Counted separately: the right password must not reset its count."""
        return cls(account=f"second factor of user {user.pk}", address=_get_network(address))


def count_attempt(attempt: Attempt, *, now: datetime | None = None) -> None:
    """Counts a failed attempt unless `forget_attempts` follows. Raises TooManyRequests naming the wait."""
    now = now or timezone.now()
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Sorted, so that two attempts cannot deadlock.
            for key in sorted((f"account {attempt.account}", f"address {attempt.address}")):
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [key])
        wait = _compute_wait(attempt, now)
        if wait <= timedelta(0):
            failure = LoginFailure.objects.create(account=attempt.account, address=attempt.address)
            LoginFailure.objects.filter(pk=failure.pk).update(failed_at=now)
            return
    seconds = int(wait.total_seconds()) + 1
    log_failure(attempt.address, f"too many attempts, {seconds} s to wait")
    raise TooManyRequests(
        f"Too many attempts. Wait {format_wait(seconds)} and try again.",
        headers={"Retry-After": str(seconds)},
    )


def log_failure(address: str, reason: str) -> None:
    """Logs every failed login in one format, for programs that block addresses."""
    log.warning("Login failed from %s: %s", address, reason, extra={"address": address})


def forget_attempts(attempt: Attempt) -> None:
    """Deletes the attempts on the account, from all IP addresses, after a successful login."""
    LoginFailure.objects.filter(account=attempt.account).delete()


def forget_old_attempts() -> None:
    LoginFailure.objects.filter(failed_at__lt=timezone.now() - WINDOW).delete()


def format_wait(seconds: int) -> str:
    if seconds < 120:
        return "1 second" if seconds == 1 else f"{seconds} seconds"
    return f"{(seconds + 59) // 60} minutes"


def _compute_wait(attempt: Attempt, now: datetime) -> timedelta:
    is_account, is_address = Q(account=attempt.account), Q(address=attempt.address)
    counts = LoginFailure.objects.filter(is_account | is_address, failed_at__gt=now - WINDOW).aggregate(
        account_tries=Count("id", filter=is_account),
        account_last=Max("failed_at", filter=is_account),
        address_tries=Count("id", filter=is_address),
        address_last=Max("failed_at", filter=is_address),
    )
    return max(
        _compute_remaining(counts["account_tries"], FREE_ATTEMPTS_OF_ACCOUNT, counts["account_last"], now),
        _compute_remaining(counts["address_tries"], FREE_ATTEMPTS_OF_ADDRESS, counts["address_last"], now),
    )


def _compute_remaining(tries: int, free: int, last: datetime | None, now: datetime) -> timedelta:
    """The wait: 5 s after the last free attempt, doubling with each further one up to the whole window."""
    if last is None or tries < free:
        return timedelta(0)
    return last + min(WINDOW, FIRST_WAIT * 2 ** min(tries - free, 20)) - now


def _get_network(address: str) -> str:
    """The IP address; for IPv6 its /64 network, because a single machine usually has a whole one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
