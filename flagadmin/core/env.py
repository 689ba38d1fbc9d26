"""Reads settings from the environment. Errors name the variable."""

import os
import re

from django.core.exceptions import ImproperlyConfigured

SHORTEST_SECRET = 16  # characters

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


def text(name: str, default: str = "") -> str:
    """The variable without surrounding spaces, or the default if it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def flag(name: str, *, default: bool = False) -> bool:
    """1, true, yes and on are true; 0, false, no and off are false.

    Other values raise ImproperlyConfigured.
    """
    given = text(name).lower()
    if not given:
        return default
    if given in _TRUE:
        return True
    if given in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {given!r}.")


def integer(name: str, default: int, *, at_least: int = 0) -> int:
    """An integer, at least `at_least`."""
    given = text(name, str(default))
    try:
        number = int(given)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {given!r}.") from None
    if number < at_least:
        raise ImproperlyConfigured(f"{name} must be at least {at_least}, not {number}.")
    return number


def choice(name: str, default: str, *others: str) -> str:
    """One of these words."""
    given = text(name, default).lower()
    if given not in (default, *others):
        raise ImproperlyConfigured(f"{name} must be {', '.join(others)} or {default}, not {given!r}.")
    return given


def names(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def secret(name: str) -> str:
    """At least SHORTEST_SECRET characters that can be in a header, or empty."""
    given = text(name)
    if given and not re.fullmatch(rf"[!-~]{{{SHORTEST_SECRET},}}", given):
        raise ImproperlyConfigured(
            f"{name} must have at least {SHORTEST_SECRET} characters: ASCII letters, digits, punctuation."
        )
    return given


def origin(name: str) -> str:
    """`https://host` or `http://host:port`, without a trailing slash; empty if unset."""
    given = text(name).rstrip("/")
    if given and not re.fullmatch(r"https?://[^/?#@\s]+", given):
        raise ImproperlyConfigured(f"{name} must be a URL like https://flags.example.org, not {given!r}.")
    return given
