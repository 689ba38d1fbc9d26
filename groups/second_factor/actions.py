"""Adds and removes second factors, and makes recovery codes."""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NoAccess, NotFound, ValidationError
from groups.access import Caller, Permission
from groups.login.throttle import log_failure
from groups.models import User
from groups.second_factor.codes import WRONG_CODE, encode_app_data, find_period
from groups.second_factor.queries import TYPES, describe_factor, list_factor_names

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
