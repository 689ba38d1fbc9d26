"""The constraint operators: their comparisons, and their wording in sentences, forms and messages.

Regular expressions with RE2: linear time in the length of the string, and bounded memory.

A pattern stored by one person runs in everyone's evaluations. Therefore its length, its memory, the matched text and
the number of compiled patterns per process are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from playground.engine import literals

Test = Callable[[Any], bool]
"""Whether a context value, in its column's form, passes. The value is None or NaN if absent."""

UNDECIDABLE: Final = object()
"""Represents a context value for which only an SDK can tell whether a constraint holds."""

EPSILON = 2.0**-52
"""NUM_EQ holds within this distance, as in Yggdrasil: 0.1 + 0.2 equals 0.3."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, with all that is said of it.

    `takes` is "values" or "value". `noun` and `relation` make its sentence: "needs a version above 5.0.0" is
    "needs {noun} {relation} {shown value}". Forms show `label` and `help`. `notice` is the phrase in chat messages, as
    the reference server writes it; without one, they have the operator's name.
    """

    takes: str
    family: str
    noun: str
    relation: str
    label: str
    help: str
    notice: str = ""


_NUMBER = "Values that are not numbers never match."
_VERSION = "Compares semantic versions."

# fmt: off
OPERATORS: dict[str, Operator] = {
    "IN": Operator(
        "values", "set", "", "one of", label="is one of", notice="is one of",
        help="The whole value is one of these, for example country is one of NO, SE.",
    ),
    "NOT_IN": Operator(
        "values", "set", "", "none of", label="is none of", notice="is not one of",
        help="The value is none of these, or missing, for example country is none of US.",
    ),
    "STR_STARTS_WITH": Operator(
        "values", "text", "a string", "starting with", label="Text: starts with", notice="is a string that starts with",
        help="The value begins with one of these, for example email with admin@.",
    ),
    "STR_ENDS_WITH": Operator(
        "values", "text", "a string", "ending with", label="Text: ends with", notice="is a string that ends with",
        help="The value ends with one of these, for example email with @example.com.",
    ),
    "STR_CONTAINS": Operator(
        "values", "text", "a string", "containing", label="Text: contains", notice="is a string that contains",
        help="One of these is part of the value, for example userAgent with Firefox.",
    ),
    "NUM_EQ": Operator(
        "value", "number", "a number", "equal to", label="Number: =", notice="is a number equal to",
        help=f"The number is the same: 5 and 5.0 match. {_NUMBER}",
    ),
    "NUM_GT": Operator(
        "value", "number", "a number", "above", label="Number: >", notice="is a number greater than",
        help=f"The number is greater, not equal: above 18 starts after 18. {_NUMBER}",
    ),
    "NUM_GTE": Operator(
        "value", "number", "a number", "of at least", label="Number: ≥", notice="is a number greater than or equal to",
        help=f"The number is greater or equal: at least 18 includes 18. {_NUMBER}",
    ),
    "NUM_LT": Operator(
        "value", "number", "a number", "below", label="Number: <", notice="is a number less than",
        help=f"The number is smaller, not equal: below 18 ends before 18. {_NUMBER}",
    ),
    "NUM_LTE": Operator(
        "value", "number", "a number", "of at most", label="Number: ≤", notice="is a number less than or equal to",
        help=f"The number is smaller or equal: at most 18 includes 18. {_NUMBER}",
    ),
    "DATE_AFTER": Operator(
        "value", "date", "a time", "after", label="Time: after", notice="is a date after",
        help="The time is later than this one (UTC), for example currentTime after the launch.",
    ),
    "DATE_BEFORE": Operator(
        "value", "date", "a time", "before", label="Time: before", notice="is a date before",
        help="The time is earlier than this one (UTC), for example currentTime before the sale ends.",
    ),
    "SEMVER_EQ": Operator(
        "value", "version", "a version", "equal to", label="Version: =", notice="is a SemVer equal to",
        help=f"{_VERSION} 1.2.3 matches 1.2.3 only.",
    ),
    "SEMVER_GT": Operator(
        "value", "version", "a version", "above", label="Version: >", notice="is a SemVer greater than",
        help=f"{_VERSION} Above 1.2.3: 1.2.4 and 2.0.0 match, 1.2.3 does not.",
    ),
    "SEMVER_GTE": Operator(
        "value", "version", "a version", "of at least", label="Version: ≥",
        help=f"{_VERSION} At least 1.2.3: 1.2.3 and 1.10.0 match.",
    ),
    "SEMVER_LT": Operator(
        "value", "version", "a version", "below", label="Version: <", notice="is a SemVer less than",
        help=f"{_VERSION} Below 2.0.0: 1.9.9 and 2.0.0-beta match, 2.0.0 does not.",
    ),
    "SEMVER_LTE": Operator(
        "value", "version", "a version", "of at most", label="Version: ≤",
        help=f"{_VERSION} At most 2.0.0: 2.0.0 and 1.9.9 match.",
    ),
    "REGEX": Operator(
        "value", "regex", "a string", "matching", label="Text: matches (RE2)",
        help="The pattern matches somewhere in the value: ^a+ matches aab. RE2 syntax.",
    ),
    "IN_CIDR": Operator(
        "values", "network", "an IP address", "in", label="IP address: in",
        help="The address is one of these or in one of these networks, for example 10.0.0.0/8.",
    ),
}
# fmt: on


def find_problem(operator: str, value: object) -> str | None:
    """The problem with a `value` (or a member of `values`) of an operator; None if it is valid.

    The result completes a sentence about the value: "is not a number".
    """
    if operator not in OPERATORS:
        return f"belongs to no known operator ({operator})"
    if not isinstance(value, str):
        return "is not a string"
    if OPERATORS[operator].family == "regex":
        return find_fault(value)
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
    return TEXT_TESTS[operator.removeprefix("STR_")](tuple(texts))


TEXT_TESTS: dict[str, Callable[[tuple[str, ...]], Test]] = {
    "STARTS_WITH": lambda texts: lambda value: value is not None and value.startswith(texts),
    "ENDS_WITH": lambda texts: lambda value: value is not None and value.endswith(texts),
    "CONTAINS": lambda texts: lambda value: value is not None and any(text in value for text in texts),
}


def make_pattern_test(pattern: str, *, fold: bool, inverted: bool) -> Test:
    """Whether a string (in UTF-8) matches a valid pattern. An undecidable one counts as holding."""

    def test(value: Any) -> bool:
        if value is None or value is UNDECIDABLE:
            return value is UNDECIDABLE and not inverted
        expression = compile_pattern(pattern, case_insensitive=fold)
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


MAX_LENGTH = 2_000
"""Characters of a pattern, and of any single value of a constraint."""
TEXT_LENGTHS = (10_000, 1_000, 100)
"""Lengths in characters of matched texts: a pattern gets the longest within ``MAX_STEPS``."""
MAX_TEXT_LENGTH = TEXT_LENGTHS[0]
MAX_STEPS = 300_000
"""Instructions of a pattern times characters: about 3 ms if RE2 cannot cache its states."""
MAX_MEMORY = 256 * 1024
"""Bytes of one compiled pattern with RE2's cached states."""
MAX_GROUPS = 20
"""Named groups of a pattern; other groups are not captured."""
KEPT = 1_000
"""Compiled patterns per process."""

INVALID = "is not a valid regular expression (RE2)"
_SINGLE_BYTE = re.compile(r"(?:^|[^\\])(?:\\\\)*\\C")
"""`\\C` matches a single byte, which may be part of a character. Only the C++ library supports it."""


def find_fault(pattern: str, *, case_insensitive: bool = False, captures: bool = False) -> str | None:
    """Why a pattern cannot be run, as the end of a sentence about it; None if it is valid.

    With ``captures``, unnamed groups are captured too.
    """
    if len(pattern) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH:,} characters"
    expression = _compile(pattern, case_insensitive, captures)
    return expression if isinstance(expression, str) else None


def compile_pattern(pattern: str, *, case_insensitive: bool = False, captures: bool = False) -> Any:
    """The compiled pattern; None if it is invalid. RE2 supports neither look-around nor back-references."""
    expression = _compile(pattern, case_insensitive, captures) if len(pattern) <= MAX_LENGTH else None
    return None if isinstance(expression, str) else expression


def find_longest_text(pattern: str, *, case_insensitive: bool = False) -> int:
    """The longest string, in characters, that a valid pattern is matched against."""
    size = compile_pattern(pattern, case_insensitive=case_insensitive).programsize
    return next((length for length in TEXT_LENGTHS if length * size <= MAX_STEPS), TEXT_LENGTHS[-1])


@lru_cache(maxsize=KEPT)
def _compile(pattern: str, case_insensitive: bool, captures: bool) -> Any:
    """The compiled pattern, or its fault."""
    if _SINGLE_BYTE.search(pattern):
        return INVALID
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = MAX_MEMORY
    options.case_sensitive = not case_insensitive
    try:
        expression = re2.compile(pattern, options)
        kind = "groups" if captures else "named groups"
        return expression if expression.groups <= MAX_GROUPS else f"has more than {MAX_GROUPS} {kind}"
    except re2.error as error:
        return "takes too much memory" if "too large" in str(error) else INVALID
    finally:
        re2.purge()  # the library has its own cache
