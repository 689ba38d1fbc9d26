"""The settings of logins through an identity provider: FLAGADMIN_OIDC_… or FLAGADMIN_SAML_…, and PASSWORD_LOGIN."""

import base64
import os
import warnings
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from flagadmin.core import env as environment

OIDC, SAML = "FLAGADMIN_OIDC_", "FLAGADMIN_SAML_"
REQUIRED = (f"{OIDC}ISSUER", f"{OIDC}CLIENT_ID")
METADATA = f"{SAML}METADATA"
MD, DS = "{urn:oasis:names:tc:SAML:2.0:metadata}", "{http://www.w3.org/2000/09/xmldsig#}"
WARN_BEFORE = timedelta(days=30)  # the end of the last certificate
MAX_ISSUER_LENGTH = 200  # characters; it is stored with every identity
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOnSettings:
    """An identity provider, and the use of its claims or attributes (docs/sign-on.md)."""

    prefix: ClassVar[str]  # of its environment variables
    claim: ClassVar[str]  # what its statements about people are called
    issuer: str
    button: str = "Log in with single sign-on"
    create_accounts: bool = False
    root_role: str = ""  # for created accounts; empty for none
    email_domains: frozenset[str] = frozenset()  # empty for all
    email_claim: str = "email"
    trust_email: bool = False
    link_by_email: bool = False
    groups_claim: str = ""  # empty: groups and root roles are not synchronized
    root_roles: tuple[tuple[str, str], ...] = ()  # (value of the claim, root role); the first match counts


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings(SignOnSettings):
    """An OpenID Connect provider. Its issuer has no trailing slash."""

    prefix, claim = OIDC, "claim"
    client_id: str
    client_secret: str = ""  # empty for a public client
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    logout: bool = False  # whether logging out here logs out at the provider


@dataclass(frozen=True, slots=True, kw_only=True)
class SamlSettings(SignOnSettings):
    """A SAML identity provider. Its issuer is its entity id."""

    prefix, claim = SAML, "attribute"
    url: str  # where browsers take requests (HTTP-Redirect)
    certificates: tuple[Any, ...]  # X.509, of the keys that sign its answers
    username_attribute: str = "username"
    name_attribute: str = "name"


def read_sign_on_settings() -> SignOnSettings | None:
    """The provider; None if none is set. Raises ImproperlyConfigured with the names of invalid variables."""
    oidc, saml = (
        sorted(name for name, value in os.environ.items() if name.startswith(prefix) and value.strip())
        for prefix in (OIDC, SAML)
    )
    if oidc and saml:
        raise ImproperlyConfigured(f"Both {oidc[0]} and {saml[0]} are set, but there is one provider.")
    if oidc:
        return _read_oidc_settings(oidc)
    return _read_saml_settings(saml[0]) if saml else None


def _read_oidc_settings(variables: list[str]) -> OidcSettings:
    """``variables`` are set. Raises ImproperlyConfigured with the names of invalid ones."""
    if missing := [name for name in REQUIRED if name not in variables]:
        raise ImproperlyConfigured(f"{variables[0]} is set, so {' and '.join(missing)} must be set too.")
    scopes = tuple(environment.text(f"{OIDC}SCOPES", "openid profile email").replace(",", " ").split())
    if "openid" not in scopes:
        raise ImproperlyConfigured(f"{OIDC}SCOPES must contain openid.")
    return OidcSettings(**_read_fields(OidcSettings) | {"issuer": _read_issuer(), "scopes": scopes})


def _read_fields(kind: type[SignOnSettings]) -> dict[str, Any]:
    """The fields with texts, and what OpenID Connect and SAML share. A field's variable has its name."""
    values: dict[str, Any] = {
        "email_domains": frozenset(name.lower() for name in environment.names(f"{kind.prefix}EMAIL_DOMAINS")),
        "root_roles": tuple(_read_root_roles(f"{kind.prefix}ROOT_ROLES")),
    }
    for field in fields(kind):
        variable = kind.prefix + field.name.upper().replace("CLAIM", kind.claim.upper())
        if field.type is bool:
            values[field.name] = environment.flag(variable)
        elif field.type is str:
            values[field.name] = environment.text(variable, "" if field.default is MISSING else field.default)
    if values["root_roles"] and not values["groups_claim"]:
        raise ImproperlyConfigured(
            f"{kind.prefix}ROOT_ROLES is set, so {kind.prefix}GROUPS_{kind.claim.upper()} must be set too:"
            f" the {kind.claim} with the values."
        )
    return values


def _read_saml_settings(variable: str) -> SamlSettings:
    for needed in (METADATA, "FLAGADMIN_PUBLIC_URL"):
        if not environment.text(needed):
            raise ImproperlyConfigured(f"{variable} is set, so {needed} must be set too.")
    path = environment.text(METADATA)
    try:
        return SamlSettings(**_read_fields(SamlSettings) | _read_metadata(path))
    except ImportError as error:
        raise ImproperlyConfigured(f"{METADATA} needs pip install 'flagadmin[saml]': {error}.") from error
    except (OSError, ValueError, SyntaxError) as error:  # lxml's errors are the last
        raise ImproperlyConfigured(f"{METADATA}: {path} describes no usable provider: {error}.") from error


def _read_metadata(path: str) -> dict[str, Any]:
    """The provider's entity id, URL for requests and certificates. Raises OSError, ValueError, SyntaxError."""
    import signxml  # noqa: F401  # so that it is not missed at the first login only
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from lxml import etree

    root = etree.parse(path, etree.XMLParser(resolve_entities=False, no_network=True))
    providers = list(root.iter(f"{MD}IDPSSODescriptor"))
    if len(providers) != 1:
        raise ValueError(f"it has {len(providers)} elements IDPSSODescriptor")
    issuer = providers[0].getparent().get("entityID", "")
    if not 0 < len(issuer) <= MAX_ISSUER_LENGTH:
        raise ValueError(f"its entityID must have 1 to {MAX_ISSUER_LENGTH} characters")
    services = {
        s.get("Binding", ""): s.get("Location", "") for s in providers[0].iter(f"{MD}SingleSignOnService")
    }
    url = services.get("urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect", "")
    if not _is_safe_url(url):
        raise ValueError(f"its SingleSignOnService with HTTP-Redirect must be an HTTPS URL, not {url!r}")
    described = [key for key in providers[0].iter(f"{MD}KeyDescriptor") if key.get("use") != "encryption"]
    texts = [element.text or "" for key in described for element in key.iter(f"{DS}X509Certificate")]
    certificates = tuple(x509.load_der_x509_certificate(base64.b64decode(text)) for text in texts)
    keys: list[Any] = [certificate.public_key() for certificate in certificates]
    if not keys or not all(isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) for key in keys):
        raise ValueError("it must have certificates for signatures, with RSA or EC keys")
    if any(key.key_size < (2048 if isinstance(key, rsa.RSAPublicKey) else 256) for key in keys):
        raise ValueError("its RSA keys must have at least 2048 bits, and its EC keys 256")
    last = max(certificate.not_valid_after_utc for certificate in certificates)
    if last < datetime.now(UTC) + WARN_BEFORE:
        warnings.warn(
            f"{METADATA}: the last certificate of {path} ends at {last}. Nobody logs in after that.",
            stacklevel=1,
        )
    return {"issuer": issuer, "url": url, "certificates": certificates}


def password_login(provider: SignOnSettings | None) -> bool:
    """FLAGADMIN_PASSWORD_LOGIN. Raises ImproperlyConfigured if nobody could log in any more."""
    is_on = environment.flag("FLAGADMIN_PASSWORD_LOGIN", default=True)
    if not is_on and provider is None:
        raise ImproperlyConfigured(
            f"FLAGADMIN_PASSWORD_LOGIN is off, so {' and '.join(REQUIRED)}, or {SAML}METADATA,"
            " must be set: nobody could log in otherwise."
        )
    return is_on


def _read_issuer() -> str:
    name = f"{OIDC}ISSUER"
    issuer = environment.text(name).removesuffix("/.well-known/openid-configuration").rstrip("/")
    if not _is_safe_url(issuer) or urlsplit(issuer).query or len(issuer) > MAX_ISSUER_LENGTH:
        raise ImproperlyConfigured(
            f"{name} must be the provider's URL, like https://login.example.org/realms/work, not {issuer!r}."
        )
    return issuer


def _is_safe_url(text: str) -> bool:
    """Whether it is a URL with HTTPS, or of this machine, and without a fragment."""
    url = urlsplit(text)
    is_safe = url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK)
    return is_safe and bool(url.hostname) and not url.fragment


def _read_root_roles(name: str) -> list[tuple[str, str]]:
    roles = []
    for pair in environment.names(name):
        value, _, role = pair.rpartition("=")
        if not value.strip() or not role.strip():
            raise ImproperlyConfigured(f"{name} must be like ops=Admin,developers=Editor, not {pair!r}.")
        roles.append((value.strip(), role.strip()))
    return roles
