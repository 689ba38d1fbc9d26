"""Reads the second factors of an account."""

from dataclasses import dataclass
from typing import Any

from allauth.mfa import app_settings
from allauth.mfa.models import Authenticator
from django.db.models import Exists, OuterRef, QuerySet

from groups.models import User

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
