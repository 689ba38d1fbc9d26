"""Conditions of other products as constraints, and comparisons that several products have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import TypeGuard

from importer.converting.files import format_text
from playground.engine.literals import read_version

MAX_ALTERNATIVES = 30
"""The maximum number of strategies of a flag."""
MAX_DEPTH = 50


class Unsupported(Exception):
    """A part without an equivalent here. The message is a sentence about it."""


@dataclass(frozen=True, slots=True)
class Test:
    """A constraint. ``value`` is for operators that take one value, ``values`` for the others.

    ``negation`` replaces the inverse of a test that cannot be inverted.
    """

    field: str
    operator: str
    values: tuple[str, ...] = ()
    value: str = ""
    inverted: bool = False
    case_insensitive: bool = False
    negation: Test | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InSegment:
    """Whether the segment with this name holds. A negated one is replaced by the negation of its condition.

    One object represents a segment: comparing thousands of values repeatedly would take most of the time.
    """

    name: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Any:
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


Condition = Test | InSegment | All | Any | Not
Literal = Test | InSegment
Alternative = tuple[Literal, ...]

ALWAYS, NEVER = All(), Any()


def has_value(field: str) -> Test:
    """Whether a context has a field."""
    return Test(field, "REGEX", value="^")


def match_any(field: str, values: Iterable[str]) -> Condition:
    values = tuple(dict.fromkeys(values))
    return Test(field, "IN", values) if values else NEVER


@dataclass(frozen=True, slots=True)
class Sizes:
    """The limits on the values of one constraint of a strategy, and of all constraints of a segment together."""

    constraint: int = 250
    segment: int = 1_000


class Alternatives:
    """Finds the alternatives of conditions. Segments are expanded once."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._segments: dict[InSegment, list[Alternative]] = {}

    def find(self, condition: Condition) -> list[Alternative]:
        """The alternatives of a condition; an empty list if it never holds. Raises Unsupported."""
        alternatives = self._expand(condition)
        sets = list(map(set, alternatives))
        return [each for each, own in zip(alternatives, sets, strict=True) if not any(o < own for o in sets)]

    def _expand(
        self, condition: Condition, *, negated: bool = False, in_segment: bool = False, depth: int = 0
    ) -> list[Alternative]:
        if depth > MAX_DEPTH:
            raise Unsupported(f"Its conditions are nested deeper than {MAX_DEPTH} levels.")
        if isinstance(condition, Test):
            size = self._sizes.segment if in_segment else self._sizes.constraint
            return _split(_invert(condition) if negated else condition, size)
        if isinstance(condition, InSegment) and not (negated or in_segment):
            return self._find_segments(condition)
        expand = partial(self._expand, in_segment=in_segment, depth=depth + 1)
        if isinstance(condition, InSegment):
            return expand(condition.condition, negated=negated)
        if isinstance(condition, Not):
            return expand(condition.part, negated=not negated)
        parts = (expand(part, negated=negated) for part in condition.parts)
        return _join(parts) if isinstance(condition, All) is not negated else _collect(parts)

    def _find_segments(self, segment: InSegment) -> list[Alternative]:
        """The segments, one of which must hold. All constraints of a segment must hold, so it may take several."""
        known = self._segments.get(segment)
        if known is None:
            known = self._segments[segment] = self._make_segments(segment)
        return known

    def _make_segments(self, segment: InSegment) -> list[Alternative]:
        alternatives = self._expand(segment.condition, in_segment=True)
        for alternative in alternatives:
            if sum(len(test.values) for test in alternative if isinstance(test, Test)) > self._sizes.segment:
                raise Unsupported(
                    f"Segment {segment.name} would have more than {self._sizes.segment:,} values."
                )
        if len(alternatives) == 1:
            return [(InSegment(segment.name, All(alternatives[0])),)] if alternatives[0] else [()]
        return [
            (InSegment(f"{segment.name} {number}", All(alternative)),)
            for number, alternative in enumerate(alternatives, 1)
        ]


def _split(test: Test, size: int) -> list[Alternative]:
    """Splits a constraint with too many values into several."""
    if len(test.values) <= size:
        return [(test,)]
    starts = range(0, len(test.values), size)
    chunks = [replace(test, values=test.values[start : start + size]) for start in starts]
    return [tuple(chunks)] if test.inverted else _collect([[(chunk,)] for chunk in chunks])


def _join(parts: Iterable[list[Alternative]]) -> list[Alternative]:
    """The alternatives that combine one of each part."""
    joined: list[Alternative] = [()]
    for part in parts:
        joined = _collect([_merge(left, right)] for left, right in product(joined, part))
    return joined


def _collect(parts: Iterable[Iterable[Alternative | None]]) -> list[Alternative]:
    """The alternatives of all parts, without duplicates."""
    unique: dict[Alternative, None] = {}
    for part in parts:
        unique.update((each, None) for each in part if each is not None)
        if len(unique) > MAX_ALTERNATIVES:
            raise Unsupported(
                f"Its rules need more than {MAX_ALTERNATIVES} strategies, as many as a flag can have."
            )
    return list(unique)


def _merge(left: Alternative, right: Alternative) -> Alternative | None:
    """Both together; None if they contradict each other."""
    merged = tuple(dict.fromkeys(left + right))
    tests = {each for each in merged if isinstance(each, Test)}
    contradicts = any(replace(test, inverted=not test.inverted) in tests for test in tests)
    return None if contradicts else merged


def _invert(test: Test) -> Test:
    if test.negation is not None:
        return test.negation
    if test.operator == "REGEX":
        pattern = "that a field is absent" if test.value == "^" else "that a pattern does not match"
        raise Unsupported(f"A constraint cannot say {pattern} ({test.field}).")
    return replace(test, inverted=not test.inverted)


_NUMBERS = {"==": "NUM_EQ", "<": "NUM_LT", "<=": "NUM_LTE", ">": "NUM_GT", ">=": "NUM_GTE"}
_INVERSE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_VERSIONS = {"=": "SEMVER_EQ", "<": "SEMVER_LT", "<=": "SEMVER_LTE", ">": "SEMVER_GT", ">=": "SEMVER_GTE"}


def compare_number(field: str, relation: str, limit: float, *, if_absent: bool = False) -> Test:
    """``if_absent``: whether it also holds if the context has no such number."""
    if if_absent:
        return Test(field, _NUMBERS[_INVERSE[relation]], value=format_text(limit), inverted=True)
    return Test(field, _NUMBERS[relation], value=format_text(limit))


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compare_equal(field: str, value: object) -> Condition:
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
        return Any(tuple(Test(field, _VERSIONS[each], value=complete) for each in ("<", ">")))
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
