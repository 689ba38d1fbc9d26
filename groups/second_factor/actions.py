"""Adds and removes second factors, and makes recovery codes.

Reads the second factors of an account.

Checks the codes of authenticator apps and recovery codes. Each works once.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa import app_settings
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from allauth.mfa.utils import decrypt, encrypt
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NoAccess, NotFound, ValidationError
from groups.access import Caller, Permission
from groups.login.passwords import Attempt, count_attempt, forget_attempts, log_failure
from groups.models import User

Type = Authenticator.Type
MAX_PASSKEYS = 20


@transactional
def add_app(user: User, secret: str, code: str, *, caller: Caller) -> list[str]:
    """Adds an authenticator app with this secret, which the code proves.

    Returns recovery codes if these are the first, otherwise none. Raises NoAccess, ValidationError,
    InvalidOperation (there already is one).
    """
    _lock_own(user, caller)
    if Authenticator.objects.filter(user=user, type=Type.TOTP).exists():
        raise InvalidOperation("Your account has an authenticator app. Remove it first.")
    period = find_period(secret, code, after=0, now=timezone.now())
    if period is None:
        raise ValidationError.at("code", WRONG_CODE)
    factor = Authenticator.objects.create(user=user, type=Type.TOTP, data=encode_app_data(secret, period))
    return _finish_adding(factor, user, caller)


@transactional
def add_passkey(user: User, name: str, credential: dict[str, Any], *, caller: Caller) -> list[str]:
    """Adds a passkey made by a browser (`passkeys.verify_new_credential`). Returns and raises the same as `add_app`."""
    _lock_own(user, caller)
    if Authenticator.objects.filter(user=user, type=Type.WEBAUTHN).count() >= MAX_PASSKEYS:
        raise InvalidOperation(f"An account has at most {MAX_PASSKEYS} passkeys. Remove one first.")
    data = {"name": name, "credential": credential}
    return _finish_adding(
        Authenticator.objects.create(user=user, type=Type.WEBAUTHN, data=data), user, caller
    )


@transactional
def rename_passkey(user: User, passkey_id: int, name: str, *, caller: Caller) -> None:
    """Raises NoAccess, NotFound."""
    _lock_own(user, caller)
    passkey = find_own_passkey(user, passkey_id)
    passkey.data["name"] = name
    passkey.save(update_fields=["data"])


@transactional
def use_challenge(passkey: Authenticator, issued: float) -> bool:
    """Whether the passkey has answered no challenge issued at this time (in seconds) or later. Notes the use."""
    passkey = Authenticator.objects.select_for_update().get(pk=passkey.pk)
    if issued <= passkey.data.get("challenge", 0):
        return False
    passkey.data["challenge"] = issued
    passkey.last_used_at = timezone.now()
    passkey.save(update_fields=["data", "last_used_at"])
    return True


@transactional
def make_recovery_codes(user: User, *, caller: Caller) -> list[str]:
    """Replaces the recovery codes. Raises NoAccess, InvalidOperation (without a second factor)."""
    _lock_own(user, caller)
    if not Authenticator.objects.filter(user=user, type__in=TYPES).exists():
        raise InvalidOperation("Recovery codes stand in for a second factor. Set one up first.")
    return _make_codes(user, caller)


@transactional
def remove_factor(user: User, factor_id: int, *, caller: Caller) -> str:
    """Removes an authenticator app or a passkey, and with the last one the recovery codes. Returns its name.

    Raises NoAccess, NotFound.
    """
    _lock_own(user, caller)
    factor = find_own_factor(user, factor_id)
    name = describe_factor(factor)
    factor.delete()
    if not Authenticator.objects.filter(user=user, type__in=TYPES).exists():
        Authenticator.objects.filter(user=user).delete()
    _record(EventType.USER_SECOND_FACTOR_REMOVED, user, caller, before={"factors": [name]})
    return name


@transactional
def remove_all_factors(user_id: int, *, caller: Caller) -> User:
    """Removes the second factors of a user who has lost them.

    Raises NoAccess, NotFound, InvalidOperation (there are none, or they are the caller's own).
    """
    caller.check(Permission.ADMIN)
    people = User.objects.select_for_update(no_key=True).people()
    user = get_or_404(people, f"Person with id {user_id} not found.", pk=user_id)
    if user.pk == caller.id:
        raise InvalidOperation("Change your own second factors on your account's page.")
    names = list_factor_names(user)
    if not names:
        raise InvalidOperation(f"{user} has no second factor.")
    Authenticator.objects.filter(user=user).delete()
    _record(EventType.USER_SECOND_FACTOR_REMOVED, user, caller, before={"factors": names})
    return user


@transactional
def record_wrong_code(user: User, *, address: str) -> None:
    """Records a login with the right password but a wrong code. Does not record attempts rejected by the throttle."""
    log_failure(address, f"wrong second factor of {user}")
    after = {"address": address, "wrong": "second factor"}
    _record(EventType.USER_LOGIN_FAILED, user, Caller.system(), after=after)


def find_own_factor(user: User, factor_id: int) -> Authenticator:
    """The user's authenticator app or passkey. Raises NotFound."""
    return get_or_404(
        Authenticator.objects,
        "This second factor has been removed already.",
        user=user,
        pk=factor_id,
        type__in=TYPES,
    )


def find_own_passkey(user: User, passkey_id: int) -> Authenticator:
    """Raises NotFound."""
    factor = find_own_factor(user, passkey_id)
    if factor.type != Type.WEBAUTHN:
        raise NotFound("There is no such passkey.")
    return factor


def _finish_adding(factor: Authenticator, user: User, caller: Caller) -> list[str]:
    _record(EventType.USER_SECOND_FACTOR_ADDED, user, caller, after={"factors": [describe_factor(factor)]})
    if Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).exists():
        return []
    return _make_codes(user, caller)


def _make_codes(user: User, caller: Caller) -> list[str]:
    Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
    codes = RecoveryCodes.activate(user).generate_codes()
    _record(EventType.USER_RECOVERY_CODES_CREATED, user, caller, after={"count": len(codes)})
    return [f"{code[:4]}-{code[4:]}" for code in codes]


def _lock_own(user: User, caller: Caller) -> None:
    """Locks the account, to serialize its changes. Raises NoAccess for another user's account."""
    if caller.id != user.pk:
        raise NoAccess("Only its owner can change an account's second factors.")
    User.objects.select_for_update(no_key=True).get(pk=user.pk)


def _record(kind: EventType, user: User, caller: Caller, **states: Any) -> None:
    record(Event(type=kind, subject=user.username, **states), actor=caller)


TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)  # recovery codes only stand in for these


@dataclass(frozen=True, slots=True)
class SecondFactors:
    """``codes_left``: None without recovery codes."""

    app: Authenticator | None
    passkeys: list[Authenticator]
    codes_left: int | None

    def __bool__(self) -> bool:
        return self.app is not None or bool(self.passkeys)


def read_second_factors(user: User) -> SecondFactors:
    factors = list(Authenticator.objects.filter(user=user).order_by("pk"))
    by_type = {kind: [factor for factor in factors if factor.type == kind] for kind in Authenticator.Type}
    apps, codes = by_type[Authenticator.Type.TOTP], by_type[Authenticator.Type.RECOVERY_CODES]
    return SecondFactors(
        app=apps[0] if apps else None,
        passkeys=by_type[Authenticator.Type.WEBAUTHN],
        codes_left=app_settings.RECOVERY_CODE_COUNT - codes[0].data["used_mask"].bit_count()
        if codes
        else None,
    )


def list_factor_names(user: User) -> list[str]:
    """Lists the names of all its second factors and recovery codes."""
    return [describe_factor(factor) for factor in Authenticator.objects.filter(user=user).order_by("pk")]


def has_second_factor(user: User) -> bool:
    return Authenticator.objects.filter(user=user, type__in=TYPES).exists()


def annotate_second_factor(users: QuerySet[Any]) -> QuerySet[Any]:
    """Adds ``has_second_factor`` to each account."""
    factors = Authenticator.objects.filter(user=OuterRef("pk"), type__in=TYPES)
    return users.annotate(has_second_factor=Exists(factors))


def describe_factor(factor: Authenticator) -> str:
    """``authenticator app``, ``passkey Phone``, ``recovery codes``."""
    if factor.type == Authenticator.Type.WEBAUTHN:
        return f"passkey {factor.data['name']}"
    return "authenticator app" if factor.type == Authenticator.Type.TOTP else "recovery codes"


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
