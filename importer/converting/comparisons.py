"""Comparisons common to several products, as constraints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

from importer.converting.conditions import All, Condition, Test, Unsupported, match_any
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text
from playground.engine.literals import read_version

_NUMBERS = {"==": "NUM_EQ", "<": "NUM_LT", "<=": "NUM_LTE", ">": "NUM_GT", ">=": "NUM_GTE"}
_INVERSE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_VERSIONS = {"=": "SEMVER_EQ", "<": "SEMVER_LT", "<=": "SEMVER_LTE", ">": "SEMVER_GT", ">=": "SEMVER_GTE"}


def compare_number(field: str, relation: str, limit: float, *, if_absent: bool = False) -> Test:
    """``if_absent``: whether it also holds if the context has no such number."""
    if if_absent:
        return Test(field, _NUMBERS[_INVERSE[relation]], value=format_text(limit), inverted=True)
    return Test(field, _NUMBERS[relation], value=format_text(limit))


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compare_equal(field: str, value: Any) -> Condition:
    """Compares numbers as numbers, everything else as text. Raises Unsupported for a list or an object."""
    if isinstance(value, list | Mapping):
        raise Unsupported(f"It compares {field} with a list or an object.")
    return compare_number(field, "==", value) if is_number(value) else match_any(field, [format_text(value)])


def match_texts_in_any_case(field: str, texts: Iterable[str], *, negation: Test | None = None) -> Test:
    """Requires a pattern, and a pattern cannot be negated."""
    pattern = "|".join(re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text) for text in texts)
    return Test(field, "REGEX", value=f"^(?:{pattern})$", case_insensitive=True, negation=negation)


def compare_time(relation: str, seconds: float) -> Test:
    """Compares the current time, in whole seconds, with a time in seconds since 1970."""
    after, inclusive = relation.startswith(">"), relation.endswith("=")
    return compare_with_moment(
        before=not after, moment=read_moment(seconds + (1 if after is not inclusive else 0))
    )


def compare_with_moment(*, before: bool, moment: datetime, field: str = "currentTime") -> Test:
    """Makes a test for times before a moment, or from it on. Raises Unsupported."""
    try:
        text = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:  # the first or last possible day, in another time zone
        raise Unsupported(f"{moment.isoformat()} is not a time in UTC.") from None
    return Test(field, "DATE_BEFORE", value=text, inverted=not before)


def read_moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise Unsupported(f"{seconds:g} is not a time in seconds since 1970.") from None


def read_date_time(text: str) -> datetime:
    """Parses a date-time of RFC 3339, which may lack its zone. Raises Unsupported."""
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        raise Unsupported(f"{text[:60]} is not a date-time.") from None


def compare_versions(field: str, relation: str, limit: str) -> Condition:
    """``relation`` is one of = != < <= > >= ^ ~; a version may lack its last parts, and begin with v."""
    complete = complete_version(limit)
    if relation == "!=":
        return AnyOf(tuple(Test(field, _VERSIONS[each], value=complete) for each in ("<", ">")))
    if relation in ("^", "~"):
        major, minor = (int(part) for part in complete.split("-")[0].split(".")[:2])
        lowest = f"{major}.0.0-0" if relation == "^" else f"{major}.{minor}.0-0"
        beyond = f"{major + 1}.0.0-0" if relation == "^" else f"{major}.{minor + 1}.0-0"
        return All((compare_versions(field, ">=", lowest), compare_versions(field, "<", beyond)))
    if relation not in _VERSIONS:
        raise Unsupported(f"It compares versions with {relation}.")
    return Test(field, _VERSIONS[relation], value=complete)


def complete_version(text: str) -> str:
    """Adds missing parts of a version. Raises Unsupported if it is invalid."""
    numbers, dash, rest = text.removeprefix("v").removeprefix("V").partition("-")
    numbers, plus, build = numbers.partition("+")
    complete = f"{numbers}{'.0' * (2 - numbers.count('.'))}{dash}{rest}{plus}{build}"
    if read_version(complete) is None:
        raise Unsupported(f"{text[:60]} is not a version like 1.2.3.")
    return complete
