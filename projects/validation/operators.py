"""What each constraint operator takes, and which values it can read."""

import ipaddress
import re
from collections.abc import Callable
from datetime import datetime

from projects.validation.names import compiled_pattern

VALUES = "values"
VALUE = "value"
# These look for parts of a value, so legal values, which are whole ones, do not bind them.
PARTIAL = frozenset({"STR_ENDS_WITH", "STR_STARTS_WITH", "STR_CONTAINS", "REGEX", "IN_CIDR"})

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3})?(Z|[+-][0-9]{2}:[0-9]{2})"
)


def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text.strip()):
        return False
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in text


def _any_text(text: str) -> bool:
    return True


_FAMILIES: dict[str, tuple[str, Callable[[str], object], str]] = {
    "NUM": (VALUE, lambda text: _NUMBER.fullmatch(text.strip()), "is no number"),
    "DATE": (VALUE, _is_time, "is no date like 2026-11-21T09:00:00.000Z"),
    "SEMVER": (VALUE, _VERSION.fullmatch, "is no version like 1.2.3 (semver.org)"),
    "REGEX": (VALUE, compiled_pattern, "is no valid regular expression (RE2)"),
    "IN_CIDR": (VALUES, _is_network, "is no address or network like 10.0.0.0/8"),
    "STR": (VALUES, _any_text, ""),
    "IN": (VALUES, _any_text, ""),
    "NOT_IN": (VALUES, _any_text, ""),
}
OPERATORS: dict[str, str] = {
    name: name if name in _FAMILIES else name.partition("_")[0]
    for name in (
        "NOT_IN", "IN", "STR_ENDS_WITH", "STR_STARTS_WITH", "STR_CONTAINS", "NUM_EQ", "NUM_GT", "NUM_GTE", "NUM_LT",
        "NUM_LTE", "DATE_AFTER", "DATE_BEFORE", "SEMVER_EQ", "SEMVER_GT", "SEMVER_LT", "SEMVER_GTE", "SEMVER_LTE",
        "REGEX", "IN_CIDR",
    )
}  # fmt: skip


def takes(operator: str) -> str:
    """``values`` or ``value``."""
    return _FAMILIES[OPERATORS[operator]][0]


def value_problem(operator: str, value: str) -> str | None:
    """What is wrong with one value for an operator; the text goes on after the value: "is no number"."""
    _, reads, problem = _FAMILIES[OPERATORS[operator]]
    return None if reads(value) else problem
