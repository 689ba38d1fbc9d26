"""Reads the settings of logins through an identity provider: FLAGADMIN_OIDC_… and FLAGADMIN_PASSWORD_LOGIN."""

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from flagadmin.core import env as environment

PREFIX = "FLAGADMIN_OIDC_"
REQUIRED = (f"{PREFIX}ISSUER", f"{PREFIX}CLIENT_ID")
MAX_ISSUER_LENGTH = 200  # characters; it is stored with every identity
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An OpenID Connect provider, and the use of its claims (docs/sign-on.md)."""

    issuer: str  # without a trailing slash
    client_id: str
    client_secret: str = ""  # empty for a public client
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    button: str = "Log in with single sign-on"
    create_accounts: bool = False
    root_role: str = ""  # for created accounts; empty for none
    email_domains: frozenset[str] = frozenset()  # empty for all
    email_claim: str = "email"
    trust_email: bool = False
    link_by_email: bool = False
    logout: bool = False  # whether logging out here logs out at the provider
    groups_claim: str = ""  # empty: groups and root roles are not synchronized
    root_roles: tuple[tuple[str, str], ...] = ()  # (value of the claim, root role); the first match counts


def read_oidc_settings() -> OidcSettings | None:
    """The provider; None if none is set. Raises ImproperlyConfigured with the names of invalid variables."""
    variables = sorted(
        name for name, value in os.environ.items() if name.startswith(PREFIX) and value.strip()
    )
    if not variables:
        return None
    if missing := [name for name in REQUIRED if name not in variables]:
        raise ImproperlyConfigured(f"{variables[0]} is set, so {' and '.join(missing)} must be set too.")
    oidc = OidcSettings(
        issuer=_read_issuer(),
        client_id=environment.text(f"{PREFIX}CLIENT_ID"),
        client_secret=environment.text(f"{PREFIX}CLIENT_SECRET"),
        scopes=tuple(environment.text(f"{PREFIX}SCOPES", "openid profile email").replace(",", " ").split()),
        button=environment.text(f"{PREFIX}BUTTON", "Log in with single sign-on"),
        create_accounts=environment.flag(f"{PREFIX}CREATE_ACCOUNTS"),
        root_role=environment.text(f"{PREFIX}ROOT_ROLE"),
        email_domains=frozenset(name.lower() for name in environment.names(f"{PREFIX}EMAIL_DOMAINS")),
        email_claim=environment.text(f"{PREFIX}EMAIL_CLAIM", "email"),
        trust_email=environment.flag(f"{PREFIX}TRUST_EMAIL"),
        link_by_email=environment.flag(f"{PREFIX}LINK_BY_EMAIL"),
        logout=environment.flag(f"{PREFIX}LOGOUT"),
        groups_claim=environment.text(f"{PREFIX}GROUPS_CLAIM"),
        root_roles=tuple(_read_root_roles()),
    )
    if "openid" not in oidc.scopes:
        raise ImproperlyConfigured(f"{PREFIX}SCOPES must contain openid.")
    if oidc.root_roles and not oidc.groups_claim:
        raise ImproperlyConfigured(
            f"{PREFIX}ROOT_ROLES is set, so {PREFIX}GROUPS_CLAIM must be set too: the claim with the values."
        )
    return oidc


def password_login(oidc: OidcSettings | None) -> bool:
    """FLAGADMIN_PASSWORD_LOGIN. Raises ImproperlyConfigured if nobody could log in any more."""
    is_on = environment.flag("FLAGADMIN_PASSWORD_LOGIN", default=True)
    if not is_on and oidc is None:
        raise ImproperlyConfigured(
            f"FLAGADMIN_PASSWORD_LOGIN is off, so {' and '.join(REQUIRED)} must be set:"
            " nobody could log in otherwise."
        )
    return is_on


def _read_issuer() -> str:
    name = f"{PREFIX}ISSUER"
    issuer = environment.text(name).removesuffix("/.well-known/openid-configuration").rstrip("/")
    url = urlsplit(issuer)
    is_safe = url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK)
    if not is_safe or not url.hostname or url.query or url.fragment or len(issuer) > MAX_ISSUER_LENGTH:
        raise ImproperlyConfigured(
            f"{name} must be the provider's URL, like https://login.example.org/realms/work, not {issuer!r}."
        )
    return issuer


def _read_root_roles() -> list[tuple[str, str]]:
    name, roles = f"{PREFIX}ROOT_ROLES", []
    for pair in environment.names(name):
        value, _, role = pair.rpartition("=")
        if not value.strip() or not role.strip():
            raise ImproperlyConfigured(f"{name} must be like ops=Admin,developers=Editor, not {pair!r}.")
        roles.append((value.strip(), role.strip()))
    return roles
