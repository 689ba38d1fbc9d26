"""Parsers for numbers, versions, times, IP addresses and networks.

Yggdrasil has two grammars: a strict one for constraint values (its rule language) and a tolerant one for context
values. docs/decisions/evaluation.md lists the choices.

Converts JSON values to the types that the engine expects, in stored definitions and in contexts.

Every value must give a definite result, so these functions never raise: a value of the wrong type becomes empty or a
string.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

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


def to_text(value: object) -> str:
    """The string of a JSON value as JavaScript's `String()` returns it: 5.0 is "5", True is "true", None is ""."""
    if isinstance(value, str):
        return value if value.isascii() else _make_storable(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _format_number(value)
    try:
        return _make_storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    except (ValueError, RecursionError):
        return ""


def _format_number(value: int | float) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    if 1e-6 <= abs(number) < 1e21:
        digits = format(Decimal(repr(number)), "f")
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    mantissa, _, exponent = repr(number).partition("e")
    return f"{mantissa}e{int(exponent):+d}"


def _make_storable(text: str) -> str:
    """The text in a form that UTF-8 can encode: a lone surrogate becomes "?"."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


# The characters that Python strips, except U+001C to U+001F, which Unicode and SDKs do not count as white space.
_WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))


def trim(text: str) -> str:
    """The string without surrounding white space, as trimmed by SDKs."""
    return text.strip(_WHITE_SPACE)


def string_of(value: object) -> str | None:
    """A name or a list item: the text of a scalar, None for null and for structured values."""
    if type(value) is str:  # the usual case
        return to_text(value)
    return None if value is None or isinstance(value, Mapping | list) else to_text(value)


def strings_of(value: object) -> list[str]:
    """The strings of a stored list, without nulls, lists and objects; empty if the value is not a list."""
    return [text for item in items_of(value) if (text := string_of(item)) is not None]


def items_of(value: object) -> list[Any]:
    """The stored list; empty if the value is not a list."""
    if type(value) is list:  # the usual case, and testing for a union of types takes three times as long
        return value[:]
    return list(value) if isinstance(value, list | tuple) else []


def mapping_of(value: object) -> Mapping[str, Any]:
    """The stored object; empty if the value is not an object."""
    # Most are plain dicts, and testing for a Mapping takes ten times as long.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """The stored list of objects; items of other types become empty objects, so that indices stay the same."""
    if not value:  # the usual case
        return []
    return [mapping_of(item) for item in items_of(value)]


def parameters_of(value: object) -> dict[str, str]:
    """Strategy parameters with all values as strings, null as "", as SDKs receive them."""
    return {to_text(key): to_text(item) for key, item in mapping_of(value).items()}


def weight_of(value: object) -> int:
    """A variant's weight; 0 if it is negative or not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        return max(int(float(value)), 0)
    except (ValueError, OverflowError):
        return 0
