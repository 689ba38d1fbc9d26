"""The constraint operators: their comparisons, and their wording in sentences, forms and messages.

Regular expressions with RE2: linear time in the length of the string, and bounded memory.

A pattern stored by one person runs in everyone's evaluations. Therefore its length, its memory, the matched text and
the number of compiled patterns per process are limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, Final

import re2

from playground.engine import literals
from playground.engine.suggestions import suggest_date, suggest_number

Test = Callable[[Any], bool]
"""Whether a context value, in its column's form, passes. The value is None or NaN if absent."""

UNDECIDABLE: Final = object()
"""Represents a context value for which only an SDK can tell whether a constraint holds."""

EPSILON = 2.0**-52
"""NUM_EQ holds within this distance, as in Yggdrasil: 0.1 + 0.2 equals 0.3."""


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


def make_pattern_test(pattern: str, *, fold: bool, inverted: bool) -> Test:
    """Whether a string (in UTF-8) matches a valid pattern. An undecidable one counts as holding."""

    def test(value: Any) -> bool:
        if value is None or value is UNDECIDABLE:
            return value is UNDECIDABLE and not inverted
        expression = compile_pattern(pattern, case_insensitive=fold)
        return expression is not None and expression.search(value) is not None

    return test


def is_one_of(texts: tuple[str, ...]) -> Test:
    return frozenset(texts).__contains__


def starts_with(texts: tuple[str, ...]) -> Test:
    return lambda value: value is not None and value.startswith(texts)


def ends_with(texts: tuple[str, ...]) -> Test:
    return lambda value: value is not None and value.endswith(texts)


def contains(texts: tuple[str, ...]) -> Test:
    return lambda value: value is not None and any(text in value for text in texts)


def is_in_network(texts: tuple[str, ...]) -> Test:
    """Whether an IP address is in one of the networks; strings that are not networks are ignored."""
    networks = tuple(parsed for text in texts if (parsed := literals.read_network(text)) is not None)

    def test(value: literals.Address | None) -> bool:
        if value is None:
            return False
        version, number = value
        return any(number & mask == base for family, mask, base in networks if family == version)

    return test


# Comparisons with a limit. Numbers are floats, and an absent one is NaN, which no comparison accepts; other absent
# values are None.
def is_equal(limit: Any) -> Test:
    if isinstance(limit, float):
        return lambda value: abs(value - limit) < EPSILON
    return lambda value: value == limit


def is_above(limit: Any) -> Test:
    return limit.__lt__ if isinstance(limit, float) else lambda value: value is not None and value > limit


def is_at_least(limit: Any) -> Test:
    return limit.__le__ if isinstance(limit, float) else lambda value: value is not None and value >= limit


def is_below(limit: Any) -> Test:
    return limit.__gt__ if isinstance(limit, float) else lambda value: value is not None and value < limit


def is_at_most(limit: Any) -> Test:
    return limit.__ge__ if isinstance(limit, float) else lambda value: value is not None and value <= limit


def _never(limit: Any) -> Test:
    return never


@dataclass(frozen=True, slots=True)
class Family:
    """What the operators on values of one kind have in common.

    `noun` begins their sentences. Forms list them under `group`, with an input of the kind `input`, which shows `hint`
    while it is empty; operators with a "list" read `values`, others `value`. `find_fault` completes a sentence about a
    stored value ("is not a number"), and `suggest` names the probable one. `form` is the form of the context values in
    lists (`context.FORMS`). `is_partial`: operators match parts or ranges, to which legal values, being whole, do not
    apply.
    """

    noun: str
    group: str
    input: str = "list"
    hint: str = ""
    find_fault: Callable[[str], str | None] = lambda value: None
    suggest: Callable[[str], str | None] | None = None
    form: str = "text"
    may_be_empty: bool = False
    may_ignore_case: bool = False
    may_invert: bool = True
    is_partial: bool = False


def _find_unreadable(read: Callable[[str], object | None], fault: str) -> Callable[[str], str | None]:
    return lambda value: fault if read(value) is None else None


def _read_trimmed(read: Callable[[str], object | None]) -> Callable[[str], object | None]:
    return lambda text: read(text.strip(" \t"))


SET = Family("", "List", may_be_empty=True)
TEXT = Family("a string", "Text", may_ignore_case=True, is_partial=True)
NUMBER = Family(
    "a number",
    "Number",
    input="number",
    find_fault=_find_unreadable(_read_trimmed(literals.read_constraint_number), "is not a number"),
    suggest=suggest_number,
)
DATE = Family(
    "a time",
    "Time",
    input="time",
    hint="2026-11-21T09:00:00.000Z",
    find_fault=_find_unreadable(
        _read_trimmed(literals.read_constraint_instant),
        "is not a date and time (UTC) like 2026-11-21T09:00:00.000Z",
    ),
    suggest=suggest_date,
)
VERSION = Family(
    "a version",
    "Version",
    input="text",
    hint="1.2.3",
    find_fault=_find_unreadable(literals.read_version, "is not a version like 1.2.3 (semver.org)"),
)
PATTERN = Family(
    "a string",
    "Text",
    input="text",
    hint="RE2, for example ^[a-z]+@",
    find_fault=find_fault,
    may_ignore_case=True,
    may_invert=False,
    is_partial=True,
)
NETWORK = Family(
    "an IP address",
    "IP address",
    hint="10.0.0.0/8, 2001:db8::/32",
    find_fault=_find_unreadable(literals.read_network, "is not an address or network like 10.0.0.0/8"),
    form="address",
    is_partial=True,
)


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, with all that is said of it.

    `relation` continues its sentence: "needs a version above 5.0.0" is "needs {noun} {relation} {shown value}".
    `compare` makes the test of a context value from the stored values, or from the limit. Forms show `label` and
    `help`. `notice` is the phrase in chat messages, as the reference server writes it; without one, they have the
    operator's name.
    """

    family: Family
    relation: str
    compare: Callable[[Any], Test] = _never
    _: KW_ONLY
    label: str
    help: str
    notice: str = ""

    @property
    def takes_list(self) -> bool:
        """Whether it reads `values`, not `value`."""
        return self.family.input == "list"


_NOT_NUMBERS = "Values that are not numbers never match."
_SEMANTIC = "Compares semantic versions."

# fmt: off
OPERATORS: dict[str, Operator] = {
    "IN": Operator(
        SET, "one of", is_one_of, label="is one of", notice="is one of",
        help="The whole value is one of these, for example country is one of NO, SE.",
    ),
    "NOT_IN": Operator(
        SET, "none of", is_one_of, label="is none of", notice="is not one of",
        help="The value is none of these, or missing, for example country is none of US.",
    ),
    "STR_STARTS_WITH": Operator(
        TEXT, "starting with", starts_with, label="Text: starts with", notice="is a string that starts with",
        help="The value begins with one of these, for example email with admin@.",
    ),
    "STR_ENDS_WITH": Operator(
        TEXT, "ending with", ends_with, label="Text: ends with", notice="is a string that ends with",
        help="The value ends with one of these, for example email with @example.com.",
    ),
    "STR_CONTAINS": Operator(
        TEXT, "containing", contains, label="Text: contains", notice="is a string that contains",
        help="One of these is part of the value, for example userAgent with Firefox.",
    ),
    "NUM_EQ": Operator(
        NUMBER, "equal to", is_equal, label="Number: =", notice="is a number equal to",
        help=f"The number is the same: 5 and 5.0 match. {_NOT_NUMBERS}",
    ),
    "NUM_GT": Operator(
        NUMBER, "above", is_above, label="Number: >", notice="is a number greater than",
        help=f"The number is greater, not equal: above 18 starts after 18. {_NOT_NUMBERS}",
    ),
    "NUM_GTE": Operator(
        NUMBER, "of at least", is_at_least, label="Number: ≥", notice="is a number greater than or equal to",
        help=f"The number is greater or equal: at least 18 includes 18. {_NOT_NUMBERS}",
    ),
    "NUM_LT": Operator(
        NUMBER, "below", is_below, label="Number: <", notice="is a number less than",
        help=f"The number is smaller, not equal: below 18 ends before 18. {_NOT_NUMBERS}",
    ),
    "NUM_LTE": Operator(
        NUMBER, "of at most", is_at_most, label="Number: ≤", notice="is a number less than or equal to",
        help=f"The number is smaller or equal: at most 18 includes 18. {_NOT_NUMBERS}",
    ),
    "DATE_AFTER": Operator(
        DATE, "after", is_above, label="Time: after", notice="is a date after",
        help="The time is later than this one (UTC), for example currentTime after the launch.",
    ),
    "DATE_BEFORE": Operator(
        DATE, "before", is_below, label="Time: before", notice="is a date before",
        help="The time is earlier than this one (UTC), for example currentTime before the sale ends.",
    ),
    "SEMVER_EQ": Operator(
        VERSION, "equal to", is_equal, label="Version: =", notice="is a SemVer equal to",
        help=f"{_SEMANTIC} 1.2.3 matches 1.2.3 only.",
    ),
    "SEMVER_GT": Operator(
        VERSION, "above", is_above, label="Version: >", notice="is a SemVer greater than",
        help=f"{_SEMANTIC} Above 1.2.3: 1.2.4 and 2.0.0 match, 1.2.3 does not.",
    ),
    "SEMVER_GTE": Operator(
        VERSION, "of at least", is_at_least, label="Version: ≥",
        help=f"{_SEMANTIC} At least 1.2.3: 1.2.3 and 1.10.0 match.",
    ),
    "SEMVER_LT": Operator(
        VERSION, "below", is_below, label="Version: <", notice="is a SemVer less than",
        help=f"{_SEMANTIC} Below 2.0.0: 1.9.9 and 2.0.0-beta match, 2.0.0 does not.",
    ),
    "SEMVER_LTE": Operator(
        VERSION, "of at most", is_at_most, label="Version: ≤",
        help=f"{_SEMANTIC} At most 2.0.0: 2.0.0 and 1.9.9 match.",
    ),
    "REGEX": Operator(
        PATTERN, "matching", label="Text: matches (RE2)",
        help="The pattern matches somewhere in the value: ^a+ matches aab. RE2 syntax.",
    ),
    "IN_CIDR": Operator(
        NETWORK, "in", is_in_network, label="IP address: in",
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
    return OPERATORS[operator].family.find_fault(value) if isinstance(value, str) else "is not a string"


def suggest_value(operator: str, value: str) -> str | None:
    """The probable value in the SDKs' format: "0.5" for ".5", "2024-01-01T00:00:00.000Z" for "2024-01-01".

    None for a value that SDKs can read, and if there is no suggestion.
    """
    suggest = OPERATORS[operator].family.suggest
    if suggest is None or len(value) > literals.MAX_LENGTH or not find_problem(operator, value):
        return None
    suggested = suggest(value.strip())
    return suggested if suggested is not None and not find_problem(operator, suggested) else None
