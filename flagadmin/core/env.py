"""Reads settings from the environment. Errors name the variable."""

import os
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

MIN_SECRET_LENGTH = 16  # characters

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """The variable without surrounding spaces, or the default if it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def flag(name: str, *, default: bool = False) -> bool:
    """1, true, yes and on are true; 0, false, no and off are false.

    Other values raise ImproperlyConfigured.
    """
    value = text(name).lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")


def integer(name: str, default: int, *, at_least: int = 0, at_most: int | None = None) -> int:
    """An integer within these bounds."""
    value = text(name, str(default))
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if number < at_least:
        raise ImproperlyConfigured(f"{name} must be at least {at_least}, not {number}.")
    if at_most is not None and number > at_most:
        raise ImproperlyConfigured(f"{name} must be at most {at_most:,}, not {number:,}.")
    return number


def positive(name: str, default: int) -> int:
    """An integer of at least 1."""
    return integer(name, default, at_least=1)


def choice(name: str, default: str, *others: str) -> str:
    """One of the allowed words."""
    value = text(name, default).lower()
    if value not in (default, *others):
        raise ImproperlyConfigured(f"{name} must be {', '.join(others)} or {default}, not {value!r}.")
    return value


def names(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A comma-separated list of networks, such as 10.0.0.0/8."""
    try:
        return [ip_network(part) for part in names(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be networks like 10.0.0.0/8: {error}.") from None


def secret(name: str) -> str:
    """Reads a secret of at least MIN_SECRET_LENGTH characters that can be in a header, or empty."""
    value = text(name)
    if value and not re.fullmatch(rf"[!-~]{{{MIN_SECRET_LENGTH},}}", value):
        raise ImproperlyConfigured(
            f"{name} must have at least {MIN_SECRET_LENGTH} characters: ASCII letters, digits, punctuation."
        )
    return value


def origin(name: str) -> str:
    """`https://host` or `http://host:port`, without a trailing slash; empty if unset."""
    value = text(name).rstrip("/")
    if value and not re.fullmatch(r"https?://[^/?#@\s]+", value):
        raise ImproperlyConfigured(f"{name} must be a URL like https://flags.example.org, not {value!r}.")
    return value


@dataclass(frozen=True)
class MailServer:
    """An SMTP server. ``starttls``: encrypted once connected; ``tls``: from the beginning."""

    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False


def mail_server(name: str) -> MailServer:
    """`smtp://user:password@host:587` with STARTTLS, `smtps://` with TLS, `smtp+plain://` without either."""
    if not (value := text(name)):
        return MailServer()
    ports = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
    try:
        parts = urlsplit(value)
        port = parts.port or ports[parts.scheme]
    except (ValueError, KeyError):
        raise ImproperlyConfigured(f"{name} must be a URL like smtp://user:password@host:587.") from None
    if not parts.hostname:
        raise ImproperlyConfigured(f"{name} names no host.")
    return MailServer(
        parts.hostname,
        port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        starttls=parts.scheme == "smtp",
        tls=parts.scheme == "smtps",
    )


# libpq's parameters for a host that no longer answers: the kernel would wait for a quarter of an hour. With several
# hosts, each new connection tries the dead ones first.
WHEN_HOSTS_DIE = {
    "connect_timeout": 3,  # seconds
    "tcp_user_timeout": 10_000,  # milliseconds
    "keepalives_idle": 10,  # seconds
    "keepalives_interval": 3,
    "keepalives_count": 3,
}


def database(url: str, pool: dict[str, Any]) -> dict[str, Any]:
    """Django's settings of the PostgreSQL server at a URL, with a connection pool.

    The URL is libpq's: several hosts, sslmode, target_session_attrs and all its other parameters work.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise ImproperlyConfigured("The database URL must begin with postgresql://; no other database works.")
    try:
        options = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise ImproperlyConfigured(f"The database URL is not valid: {error}") from None
    return {
        "ENGINE": "flagadmin.core.db.postgresql",
        **{name.upper(): options.pop(name, "") for name in ("user", "password", "host", "port")},
        "NAME": options.pop("dbname", ""),
        "OPTIONS": {**WHEN_HOSTS_DIE, **options, "pool": dict(pool)},
    }


def log_target(name: str) -> str:
    """`stdout`, an absolute path, `syslog://host:514`, `syslog+tcp://host:601` or `syslog:///path`; empty if unset."""
    value = text(name)
    if value and not re.fullmatch(r"stdout|/.+|syslog:///.+|syslog(\+tcp)?://[^/:]+(:\d{1,5})?", value):
        raise ImproperlyConfigured(
            f"{name} must be stdout, a path like /var/log/audit.jsonl, or a URL like syslog://host:514, not {value!r}."
        )
    return value
