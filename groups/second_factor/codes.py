"""Checks the codes of authenticator apps and recovery codes. Each works once."""

import logging
from datetime import datetime

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa import app_settings
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.mfa.utils import decrypt, encrypt
from django.db import transaction
from django.utils import timezone

from flagadmin.core.errors import ValidationError
from groups.login.throttle import Attempt, count_attempt, forget_attempts
from groups.models import User

log = logging.getLogger("flagadmin.login")

WRONG_CODE = "This code is wrong or has been used. Wait for the next one and try again."
TOLERANCE = 1  # periods by which a phone's clock may be off


class SecretKeyChanged(Exception):
    """A secret was encrypted with a SECRET_KEY that is neither the present one nor among SECRET_KEY_FALLBACKS."""


def check_code(user: User, code: str, *, address: str) -> Authenticator:
    """The factor that the code belongs to: an authenticator app or recovery codes. Uses up the code.

    Raises ValidationError if the code is wrong or used, TooManyRequests after too many attempts. Only a correct code
    resets the count, not a correct password.
    """
    attempt = Attempt.with_code(user, address)
    count_attempt(attempt)
    factor = _use_code(user, code)
    if factor is None:
        raise ValidationError.at("code", WRONG_CODE)
    forget_attempts(attempt)
    return factor


def find_period(secret: str, code: str, *, after: int, now: datetime) -> int | None:
    """The number of the period with this code, if later than ``after``."""
    current = int(now.timestamp()) // app_settings.TOTP_PERIOD
    for period in range(max(after + 1, current - TOLERANCE), current + TOLERANCE + 1):
        if compare_user_code(actual=code, expected=format_hotp_value(hotp_value(secret, period))):
            return period
    return None


def find_people_with_unreadable_codes() -> list[str]:
    """The names of users whose authenticator app or recovery codes were encrypted with another SECRET_KEY."""
    factors = Authenticator.objects.exclude(type=Authenticator.Type.WEBAUTHN).select_related("user")
    return sorted({factor.user.username for factor in factors.order_by("pk") if not _is_readable(factor)})


def _is_readable(factor: Authenticator) -> bool:
    try:
        decrypt(factor.data["secret" if factor.type == Authenticator.Type.TOTP else "seed"])
    except SecretKeyChanged:
        return False
    return True


@transaction.atomic
def _use_code(user: User, code: str) -> Authenticator | None:
    """Locks the factors, so that a code sent twice at once is accepted once."""
    factors = Authenticator.objects.select_for_update().filter(user=user).order_by("pk")
    for factor in factors.exclude(type=Authenticator.Type.WEBAUTHN):
        use = _use_app_code if factor.type == Authenticator.Type.TOTP else _use_recovery_code
        try:
            if use(factor, code):
                return factor
        except SecretKeyChanged:
            log.error("SECRET_KEY has changed: the second factor of %s cannot be read.", user)
    return None


def _use_app_code(factor: Authenticator, code: str) -> bool:
    secret = decrypt(factor.data["secret"])
    period = find_period(secret, code, after=factor.data["period"], now=timezone.now())
    if period is None:
        return False
    factor.data = encode_app_data(secret, period)
    factor.save(update_fields=["data"])
    return True


def _use_recovery_code(factor: Authenticator, code: str) -> bool:
    accepted: bool = factor.wrap().validate_code(code)
    return accepted


def encode_app_data(secret: str, period: int) -> dict[str, str | int]:
    """Encodes an authenticator app for storage. `period` is the period of the last used code."""
    return {"secret": encrypt(secret), "period": period}
