"""Slows down password guessing, per account and per IP address. The wait doubles with each attempt.

An attempt is counted before the password is checked, under a lock, so that parallel attempts cannot bypass the limit.
"""

import hashlib
import ipaddress
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Count, Max, Q
from django.utils import timezone

from flagadmin.core.errors import TooManyRequests
from groups.models import LoginFailure, User

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
