"""The constraint operators: what each compares, and how it reads in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from playground.engine import literals, patterns

Test = Callable[[Any], bool]
"""Whether a context value passes. It is in its column's form; None or NaN if absent."""

UNDECIDABLE: Final = object()
"""Stands for a context value for which only an SDK can tell whether a constraint holds."""

EPSILON = 2.0**-52
"""NUM_EQ holds within this distance, as in Yggdrasil: 0.1 + 0.2 equals 0.3."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. `takes` is "values" or "value"; `noun` and `relation` make its sentence:
    "needs a version above 5.0.0" is "needs {noun} {relation} {shown value}"."""

    takes: str
    family: str
    noun: str
    relation: str


OPERATORS: dict[str, Operator] = {
    "IN": Operator("values", "set", "", "one of"),
    "NOT_IN": Operator("values", "set", "", "none of"),
    "STR_STARTS_WITH": Operator("values", "text", "a string", "starting with"),
    "STR_ENDS_WITH": Operator("values", "text", "a string", "ending with"),
    "STR_CONTAINS": Operator("values", "text", "a string", "containing"),
    "NUM_EQ": Operator("value", "number", "a number", "equal to"),
    "NUM_GT": Operator("value", "number", "a number", "above"),
    "NUM_GTE": Operator("value", "number", "a number", "of at least"),
    "NUM_LT": Operator("value", "number", "a number", "below"),
    "NUM_LTE": Operator("value", "number", "a number", "of at most"),
    "DATE_AFTER": Operator("value", "date", "a time", "after"),
    "DATE_BEFORE": Operator("value", "date", "a time", "before"),
    "SEMVER_EQ": Operator("value", "version", "a version", "equal to"),
    "SEMVER_GT": Operator("value", "version", "a version", "above"),
    "SEMVER_GTE": Operator("value", "version", "a version", "of at least"),
    "SEMVER_LT": Operator("value", "version", "a version", "below"),
    "SEMVER_LTE": Operator("value", "version", "a version", "of at most"),
    "REGEX": Operator("value", "regex", "a string", "matching"),
    "IN_CIDR": Operator("values", "network", "an IP address", "in"),
}


def find_problem(operator: str, value: object) -> str | None:
    """Finds what is wrong with a `value` (or a member of `values`) of an operator, None if it is valid.

    The end of a sentence about the value: "is not a number".
    """
    if operator not in OPERATORS:
        return f"belongs to no known operator ({operator})"
    if not isinstance(value, str):
        return "is not a string"
    if OPERATORS[operator].family == "regex":
        return patterns.find_fault(value)
    reads = _READS.get(OPERATORS[operator].family)
    if reads is not None and reads[0](value) is None:
        return reads[1]
    return None


_READS: dict[str, tuple[Callable[[str], object | None], str]] = {
    "number": (lambda text: literals.read_constraint_number(text.strip(" \t")), "is not a number"),
    "date": (
        lambda text: literals.read_constraint_instant(text.strip(" \t")),
        "is not a date and time (UTC) like 2026-11-21T09:00:00.000Z",
    ),
    "version": (literals.read_version, "is not a version like 1.2.3 (semver.org)"),
    "network": (literals.read_network, "is not an address or network like 10.0.0.0/8"),
}


def make_comparison(operator: str, limit: Any, *, numeric: bool) -> Test:
    """The test of an ordering operator against a limit.

    An absent number is NaN, which no comparison accepts; other absent values are None.
    """
    relation = operator.rpartition("_")[2]
    if numeric:
        return _NUMERIC[relation](limit)
    return _ORDERED[relation](limit)


def _make_equal_numbers(limit: float) -> Test:
    return lambda value: abs(value - limit) < EPSILON


_NUMERIC: dict[str, Callable[[float], Test]] = {
    "EQ": _make_equal_numbers,
    "GT": lambda limit: limit.__lt__,
    "AFTER": lambda limit: limit.__lt__,
    "GTE": lambda limit: limit.__le__,
    "LT": lambda limit: limit.__gt__,
    "BEFORE": lambda limit: limit.__gt__,
    "LTE": lambda limit: limit.__ge__,
}
_ORDERED: dict[str, Callable[[Any], Test]] = {
    "EQ": lambda limit: lambda value: value == limit,
    "GT": lambda limit: lambda value: value is not None and value > limit,
    "AFTER": lambda limit: lambda value: value is not None and value > limit,
    "GTE": lambda limit: lambda value: value is not None and value >= limit,
    "LT": lambda limit: lambda value: value is not None and value < limit,
    "BEFORE": lambda limit: lambda value: value is not None and value < limit,
    "LTE": lambda limit: lambda value: value is not None and value <= limit,
}


def make_text_test(operator: str, texts: list[str]) -> Test:
    """The test of a STR_ operator: at least one of the strings matches."""
    expected = tuple(texts)
    if operator == "STR_STARTS_WITH":
        return lambda value: value is not None and value.startswith(expected)
    if operator == "STR_ENDS_WITH":
        return lambda value: value is not None and value.endswith(expected)
    return lambda value: value is not None and any(text in value for text in expected)


def make_pattern_test(pattern: str, *, fold: bool, inverted: bool) -> Test:
    """Whether a string (in UTF-8) matches a valid pattern. An undecidable one counts as holding."""

    def test(value: Any) -> bool:
        if value is None or value is UNDECIDABLE:
            return value is UNDECIDABLE and not inverted
        expression = patterns.compile_pattern(pattern, case_insensitive=fold)
        return expression is not None and expression.search(value) is not None

    return test


def make_network_test(texts: list[str]) -> Test:
    """Whether an IP address is in one of the networks; strings that are not networks are ignored."""
    networks = tuple(parsed for text in texts if (parsed := literals.read_network(text)) is not None)

    def test(value: literals.Address | None) -> bool:
        if value is None:
            return False
        version, number = value
        return any(number & mask == base for family, mask, base in networks if family == version)

    return test


def never(value: object) -> bool:
    return False
