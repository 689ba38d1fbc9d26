"""Flagsmith's segments, as conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import md5
from typing import Any, Literal, NotRequired

import orjson
from typing_extensions import TypedDict

from importer.converting.comparisons import compare_number, compare_versions
from importer.converting.conditions import (
    ALWAYS,
    MAX_DEPTH,
    NEVER,
    All,
    Condition,
    Not,
    Test,
    Unsupported,
    has_value,
    match_any,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text

VERSION = ":semver"
IDENTITY = {"$.identity.identifier": "userId"}
RELATIONS = {
    "EQUAL": "==",
    "GREATER_THAN": ">",
    "GREATER_THAN_INCLUSIVE": ">=",
    "LESS_THAN": "<",
    "LESS_THAN_INCLUSIVE": "<=",
}
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)


class SegmentCondition(TypedDict):
    operator: str
    property_: NotRequired[str | None]
    property: NotRequired[str | None]
    value: NotRequired[Any]


class SegmentRule(TypedDict):
    type: Literal["ALL", "ANY", "NONE"]
    rules: NotRequired[list[SegmentRule] | None]
    conditions: NotRequired[list[SegmentCondition] | None]


class Segment(TypedDict):
    id: NotRequired[int]
    name: str
    rules: list[SegmentRule]


class SegmentReader:
    """``percentage`` is that of the users whom a segment has, with the context field and the hash of it."""

    def __init__(self, segment: Segment, prefix: str) -> None:
        self._segment, self._prefix = segment, prefix
        self.percentage: tuple[float, str, Callable[[str], float]] | None = None

    def read(self) -> Condition:
        """Raises Unsupported."""
        rules = self._segment["rules"]
        return (
            All(tuple(self._read_rule(rule, is_needed=True, depth=0) for rule in rules)) if rules else NEVER
        )

    def _read_rule(self, rule: SegmentRule, *, is_needed: bool, depth: int) -> Condition:
        """``is_needed``: the segment holds only if the rule does, so that it may have the percentage."""
        if depth > MAX_DEPTH:
            raise Unsupported(f"Its segments are nested deeper than {MAX_DEPTH} levels.")
        listed, rules = rule.get("conditions") or [], rule.get("rules") or []
        is_all = rule["type"] == "ALL"
        inner = is_needed and (is_all or (rule["type"] == "ANY" and len(listed) + len(rules) == 1))
        conditions = [self._read_condition(each, is_needed=inner) for each in listed]
        nested = [self._read_rule(each, is_needed=inner, depth=depth + 1) for each in rules]
        return All((_match(rule["type"], conditions), _match(rule["type"], nested)))

    def _read_condition(self, condition: SegmentCondition, *, is_needed: bool) -> Condition:
        operator = condition["operator"]
        name = condition.get("property_") or condition.get("property") or ""
        value = condition.get("value")
        if operator == "PERCENTAGE_SPLIT":
            return self._read_percentage(name, value, is_needed=is_needed)
        if name.startswith("$.") and name not in IDENTITY:
            raise Unsupported(f"A segment compares {name[:100]}, which has no equivalent.")
        field = IDENTITY.get(name, name)
        if operator in RELATIONS:
            return _compare(field, operator, format_text(value))
        read = _OPERATORS.get(operator)
        if read is None:
            raise Unsupported(f"The operator {operator[:60]} has no equivalent.")
        return read(field, value)

    def _read_percentage(self, name: str, value: Any, *, is_needed: bool) -> Condition:
        if not is_needed or self.percentage is not None:
            raise Unsupported("A segment has a percentage of users as one of several ways into it.")
        try:
            percentage = min(100.0, max(0.0, float(value)))
        except (TypeError, ValueError):
            return NEVER
        key, prefix = str(self._segment.get("id", "")), "" if name else self._prefix
        if percentage < 100:
            field = IDENTITY.get(name, name) or "userId"
            self.percentage = (
                percentage,
                field,
                lambda identifier: hash_to_percentage([key, prefix + identifier]),
            )
        return ALWAYS


def _match(kind: str, parts: Sequence[Condition]) -> Condition:
    if not parts or kind == "ALL":
        return All(tuple(parts))
    return AnyOf(tuple(parts)) if kind == "ANY" else Not(AnyOf(tuple(parts)))


def _compare(field: str, operator: str, value: str) -> Condition:
    """A number compares numbers, a value that ends in :semver versions, and all others are text."""
    relation = RELATIONS[operator]
    if value.endswith(VERSION):
        return compare_versions(field, "=" if relation == "==" else relation, value.removesuffix(VERSION))
    if _INTEGER.fullmatch(value):
        return compare_number(field, relation, int(value))
    if operator != "EQUAL":
        raise Unsupported(f"It compares the order of {field} with what is not a whole number.")
    return match_any(field, [value.lower() if value in ("True", "False") else value])


def _match_different(field: str, value: Any) -> Condition:
    return All((has_value(field), Not(_compare(field, "EQUAL", format_text(value)))))


def _match_member(field: str, value: Any) -> Condition:
    """A list, or a text with commas or JSON in it."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            value = value.split(",")
    elif not isinstance(value, list):
        value = format_text(value).split(",")
    return match_any(field, map(format_text, value))


_OPERATORS: Mapping[str, Callable[[str, Any], Condition]] = {
    "NOT_EQUAL": _match_different,
    "CONTAINS": lambda field, value: Test(field, "STR_CONTAINS", (format_text(value),)),
    "NOT_CONTAINS": lambda field, value: All(
        (has_value(field), Not(Test(field, "STR_CONTAINS", (format_text(value),))))
    ),
    "REGEX": lambda field, value: Test(field, "REGEX", value=f"^(?:{format_text(value)})"),
    "IN": _match_member,
    "IS_SET": lambda field, value: has_value(field),
    "IS_NOT_SET": lambda field, value: Not(has_value(field)),
}


def hash_to_percentage(parts: Sequence[str], repeats: int = 1) -> float:
    """A number from 0 to 100, without 100 itself."""
    digest = md5(",".join(list(parts) * repeats).encode(), usedforsecurity=False).hexdigest()
    percentage = int(digest, 16) % 9999 / 9998 * 100
    return hash_to_percentage(parts, repeats + 1) if percentage == 100 else percentage
