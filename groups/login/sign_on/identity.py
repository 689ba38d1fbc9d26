"""The identity of a person at the provider, from the claims of the ID token and userinfo, or a SAML assertion."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from django.conf import settings

from flagadmin.core.errors import NoAccess, NotFound
from groups.login.sign_on.settings import OidcSettings, SignOnSettings

MAX_GROUPS = 1_000  # values of the claim
MAX_TEXT_LENGTH = 255  # characters
GROUPS_ELSEWHERE = ("hasgroups", "http://schemas.microsoft.com/claims/groups.link")  # of Entra ID
S = TypeVar("S", bound=SignOnSettings)
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def require_provider(kind: type[S]) -> S:
    """The settings of the provider. Raises NotFound without one of this kind."""
    if not isinstance(settings.SIGN_ON, kind):
        raise NotFound
    return settings.SIGN_ON


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """``groups`` are the values of the groups claim; None if none is configured."""

    issuer: str
    subject: str
    username: str = ""
    name: str = ""
    email: str = ""
    email_is_verified: bool = False
    email_fault: str = ""  # a sentence: why there is no verified email address
    groups: frozenset[str] | None = None

    @classmethod
    def of(cls, claims: Mapping[str, Any], provider: SignOnSettings) -> "Identity":
        """Reads an identity. Raises NoAccess if the groups are not in the claim."""
        email, is_verified = _read_email(claims, provider)
        return cls(
            issuer=provider.issuer,
            subject=claims["sub"],
            username=_read_text(claims, "preferred_username") or _read_text(claims, "upn") or email,
            name=_read_text(claims, "name"),
            email=email,
            email_is_verified=is_verified,
            email_fault=_find_email_fault(email, is_verified, claims, provider),
            groups=_read_groups(claims, provider.groups_claim) if provider.groups_claim else None,
        )

    @property
    def label(self) -> str:
        """The name by which people recognize it."""
        return self.username or self.email or self.subject

    @property
    def email_domain(self) -> str:
        return self.email.rpartition("@")[2].lower()


def _read_email(claims: Mapping[str, Any], provider: SignOnSettings) -> tuple[str, bool]:
    """The address, and whether it is verified. `email_verified` applies only to `email`; some providers
    send it as text. SAML has no such claim: there it is a list, like every attribute, and says nothing.
    """
    name = provider.email_claim
    value = claims.get(name)
    if isinstance(value, list):
        value = value[0] if value else None
    email = _read_text({name: value}, name)
    says_so = name == "email" and str(claims.get("email_verified")).lower() == "true"
    return email, bool(email) and (provider.trust_email or says_so)


def _find_email_fault(
    email: str, is_verified: bool, claims: Mapping[str, Any], provider: SignOnSettings
) -> str:
    """Names the missing claim, and claims that may have the address instead."""
    if is_verified:
        return ""
    is_oidc = isinstance(provider, OidcSettings)
    if email:
        says_so = is_oidc and provider.email_claim == "email"
        claim = "email_verified" if says_so else f"{provider.prefix}TRUST_EMAIL"
        return f"The identity provider does not say that {email} is verified ({claim})."
    own = ("sub", provider.email_claim)
    kinds = (str, list) if is_oidc else list  # what is no list in SAML's claims has a name of ours
    sent = [
        n for n, value in claims.items() if n not in own and isinstance(value, kinds) and "@" in str(value)
    ]
    setting = f"{provider.prefix}EMAIL_{provider.claim.upper()}"
    others = f"; it sends {', '.join(sorted(sent))}, and {setting} can name one of them" if sent else ""
    return f"The identity provider sends no email address ({provider.claim} {provider.email_claim}){others}."


def _read_text(claims: Mapping[str, Any], name: str) -> str:
    """Reads a claim. One that we cannot store counts as absent, because a shortened address would be
    another address.
    """
    value = claims.get(name)
    return value.strip() if is_storable(value) else ""


def is_storable(value: Any) -> TypeGuard[str]:
    """Whether PostgreSQL can store the value: no NUL and no lone surrogates, both of which JSON allows."""
    return isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH and not UNSTORABLE.search(value)


def _read_groups(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """A missing claim means no groups: a provider may omit an empty list, and access must end with membership."""
    # Entra ID sends a reference instead of more than 200 groups (SAML: 150).
    elsewhere = claims.get("_claim_names")
    if (isinstance(elsewhere, Mapping) and name in elsewhere) or any(claims.get(n) for n in GROUPS_ELSEWHERE):
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
