"""Parsers for numbers, versions, times, IP addresses and networks.

Yggdrasil has two grammars: a strict one for constraint values (its rule language) and a tolerant one for context
values. docs/decisions/evaluation.md lists the choices.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

from playground.engine.coercion import trim

NAN = float("nan")

Version = tuple[int, int, int, int, tuple[tuple[int, int | str], ...]]
Instant = tuple[int, int]
"""Seconds since 1970-01-01T00:00:00Z and nanoseconds; a leap second has 10**9 and more nanoseconds."""
Address = tuple[int, int]
"""IP version (4 or 6) and the address as a number."""

MAX_LENGTH = 400
"""Characters of a number or a time; the largest float has 309 digits. Anything longer is not a number or time."""
MAX_VERSION_LENGTH = 256
MAX_ADDRESS_LENGTH = 45
"""The length of "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", the longest address."""

_CONTEXT_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)
_CONSTRAINT_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_CONSTRAINT_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}))?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_CONTEXT_TIME = re.compile(
    r"([0-9]{1,4}|[+-][0-9]{1,6})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|\s+)"
    r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]+))?\s*(Z|z|[+-][0-9]{2}:?[0-9]{2})"
)
_PREFIX = re.compile(r"\+?[0-9]{1,9}", re.ASCII)
_MAX_VERSION_NUMBER = 2**64 - 1


def read_number(text: str | None) -> float:
    """A context value as a number; NaN if it is invalid, so that every comparison with it is false."""
    if text is None or len(text) > MAX_LENGTH or not _CONTEXT_NUMBER.fullmatch(text):
        return NAN
    return float(text)


def read_constraint_number(text: str) -> float | None:
    """A constraint's value as a number; None if it is invalid."""
    return float(text) if len(text) <= MAX_LENGTH and _CONSTRAINT_NUMBER.fullmatch(text) else None


def read_version(text: str | None) -> Version | None:
    """A sortable key of a semantic version (semver.org 2.0.0); None if it is invalid.

    Ignores build metadata. A leading `v`, surrounding spaces and short forms are not allowed.
    """
    match = _VERSION.fullmatch(text) if text is not None and len(text) <= MAX_VERSION_LENGTH else None
    if match is None:
        return None
    major, minor, patch = (int(part) for part in match.group(1, 2, 3))
    if max(major, minor, patch) > _MAX_VERSION_NUMBER:
        return None
    before = match[4]
    if before is None:
        return major, minor, patch, 1, ()
    return major, minor, patch, 0, tuple(_read_identifier(part) for part in before.split("."))


def _read_identifier(part: str) -> tuple[int, int | str]:
    return (0, int(part)) if part.isdigit() else (1, part)


def read_instant(text: str | None) -> Instant | None:
    """A context's time: RFC 3339, optionally with a space instead of `T` and an offset without colon."""
    if text is None or len(text := trim(text)) > MAX_LENGTH:
        return None
    match = _CONTEXT_TIME.fullmatch(text)
    return _make_instant(match) if match else None


def read_constraint_instant(text: str) -> Instant | None:
    """A constraint's time: RFC 3339 with `T`, whole seconds or milliseconds, and an offset."""
    match = _CONSTRAINT_TIME.fullmatch(text)
    return _make_instant(match) if match else None


def _make_instant(match: re.Match[str]) -> Instant | None:
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    offset = _read_offset(match[8])
    if offset is None or not 1 <= month <= 12 or not 1 <= day <= _count_days_in_month(year, month):
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    nanoseconds = int((match[7] or "0")[:9].ljust(9, "0"))
    if second == 60:
        second, nanoseconds = 59, nanoseconds + 10**9
    return ((_count_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset, nanoseconds


def _read_offset(zone: str) -> int | None:
    if zone in ("Z", "z"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (60 if zone[0] == "+" else -60)


def _count_days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _count_days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; `datetime` ends at the year 9999."""
    year -= month <= 2
    month_from_march = (month + 9) % 12
    return (
        year * 365 + year // 4 - year // 100 + year // 400 + (month_from_march * 153 + 2) // 5 + day - 719469
    )


def read_address(text: str | None) -> Address | None:
    """An IPv4 or IPv6 address; None if it is invalid. Zone identifiers are not allowed."""
    return None if text is None or len(text) > MAX_ADDRESS_LENGTH else _parse_address(text)


@lru_cache(maxsize=4096)
def _parse_address(text: str) -> Address | None:
    if "%" in text or not text.isascii() or "/" in text:
        return None
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    return parsed.version, int(parsed)


Network = tuple[int, int, int]
"""IP version, mask and the masked address."""


def read_network(text: str) -> Network | None:
    """An IP address, optionally with a prefix length or (IPv4) a netmask; host bits may be set."""
    host, slash, length = text.partition("/")
    parsed = read_address(host)
    if parsed is None:
        return None
    bits = 32 if parsed[0] == 4 else 128
    prefix = _read_prefix(length, parsed[0], bits) if slash else bits
    if prefix is None:
        return None
    mask = (1 << bits) - (1 << (bits - prefix))
    return parsed[0], mask, parsed[1] & mask


def _read_prefix(length: str, ip_version: int, bits: int) -> int | None:
    if _PREFIX.fullmatch(length):
        return int(length) if int(length) <= bits else None
    mask = read_address(length) if ip_version == 4 else None
    if mask is None or mask[0] != 4:
        return None
    ones = mask[1].bit_count()
    return ones if mask[1] == (1 << 32) - (1 << (32 - ones)) else None
