"""The identity of a person at the provider, from the claims of the ID token and the userinfo endpoint."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from django.conf import settings

from flagadmin.core.errors import NoAccess, NotFound
from groups.login.sign_on.settings import OidcSettings

MAX_GROUPS = 1_000  # values of the claim
MAX_TEXT_LENGTH = 255  # characters
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def require_oidc() -> OidcSettings:
    """The settings of the provider. Raises NotFound without one."""
    if settings.OIDC is None:
        raise NotFound
    return settings.OIDC


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """``groups`` are the values of the groups claim, None if none is configured."""

    issuer: str
    subject: str
    username: str = ""
    name: str = ""
    email: str = ""
    email_is_verified: bool = False
    groups: frozenset[str] | None = None

    @classmethod
    def of(cls, claims: Mapping[str, Any], oidc: OidcSettings) -> "Identity":
        """Raises NoAccess if the groups are not in the claim."""
        email = _read_text(claims, "email")
        return cls(
            issuer=oidc.issuer,
            subject=claims["sub"],
            username=_read_text(claims, "preferred_username") or email,
            name=_read_text(claims, "name"),
            email=email,
            # Some providers send a string.
            email_is_verified=oidc.trust_email or claims.get("email_verified") in (True, "true"),
            groups=_read_groups(claims, oidc.groups_claim) if oidc.groups_claim else None,
        )

    @property
    def label(self) -> str:
        """The name by which people recognize it."""
        return self.username or self.email or self.subject

    @property
    def email_domain(self) -> str:
        return self.email.rpartition("@")[2].lower()


def _read_text(claims: Mapping[str, Any], name: str) -> str:
    """A claim that we cannot store counts as absent: a part of an address would be another one."""
    value = claims.get(name)
    return value.strip() if is_storable(value) else ""


def is_storable(value: Any) -> TypeGuard[str]:
    """Whether PostgreSQL takes the value: without NUL, and without halves of a character, which JSON can have."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and not UNSTORABLE.search(value)


def _read_groups(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """No claim means no groups: a provider may leave out an empty list, and access must end with membership."""
    # Entra ID sends a reference instead of more than 200 groups.
    elsewhere = claims.get("_claim_names")
    if (isinstance(elsewhere, Mapping) and name in elsewhere) or claims.get("hasgroups"):
        raise NoAccess(
            "You are in more groups than the identity provider sends. Ask its administrators to send only those "
            "assigned to flagadmin."
        )
    values = claims.get(name)
    if values is None:  # realm_access.roles is a member of the claim realm_access
        values = claims
        for member in name.split("."):
            values = values.get(member) if isinstance(values, Mapping) else None
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list):
        return frozenset()
    if len(values) > MAX_GROUPS:
        raise NoAccess(f"The identity provider says that you are in more than {MAX_GROUPS:,} groups.")
    return frozenset(value for value in values if value and is_storable(value))
