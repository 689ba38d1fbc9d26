"""LaunchDarkly's clauses and segments, as conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NotRequired

from typing_extensions import TypedDict

from importer.converting.conditions import (
    MAX_DEPTH,
    All,
    Condition,
    InSegment,
    Not,
    Test,
    Unsupported,
    compare_number,
    compare_versions,
    compare_with_moment,
    has_value,
    is_number,
    match_any,
    read_date_time,
    read_moment,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text

USER_KIND = "user"
TOTAL = 100_000


class Clause(TypedDict):
    attribute: NotRequired[str]
    op: str
    values: list[Any]
    negate: NotRequired[bool]
    contextKind: NotRequired[str | None]


class SegmentRule(TypedDict):
    clauses: list[Clause]
    weight: NotRequired[int | None]


class ContextList(TypedDict):
    contextKind: NotRequired[str | None]
    values: list[str]


class Segment(TypedDict):
    included: NotRequired[list[str] | None]
    excluded: NotRequired[list[str] | None]
    includedContexts: NotRequired[list[ContextList] | None]
    excludedContexts: NotRequired[list[ContextList] | None]
    rules: NotRequired[list[SegmentRule] | None]
    unbounded: NotRequired[bool]


class Clauses:
    """Conditions of clauses. ``renamed`` are the attributes whose context fields have another name."""

    def __init__(self, segments: Mapping[str, Segment]) -> None:
        self._segments = segments
        self._conditions: dict[str, Condition] = {}
        self._open: list[str] = []
        self._dates: dict[str, None] = {}
        self.renamed: dict[str, str] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """The instructions for applications."""
        return tuple(f"Send {field} as a date-time like 2026-11-21T09:00:00Z." for field in self._dates)

    def find_field(self, kind: str, attribute: str) -> str:
        """The context field of an attribute. A path into an object becomes a name with dots."""
        name = attribute
        if attribute.startswith("/"):
            parts = attribute[1:].split("/")
            name = ".".join(part.replace("~1", "/").replace("~0", "~") for part in parts)
        if kind == USER_KIND:
            name = "userId" if name == "key" else name
        else:
            name = f"{kind}.{name}"
        source_name = attribute if kind == USER_KIND else f"{attribute} of {kind}"
        if name != attribute:
            self.renamed[source_name] = name
        return name

    def read_condition(self, clause: Clause) -> Condition:
        """Raises Unsupported."""
        negate = clause.get("negate", False)
        if clause["op"] == "segmentMatch":
            matches = AnyOf(tuple(self.read_segment(str(value)) for value in clause["values"]))
            return Not(matches) if negate else matches
        attribute = clause.get("attribute") or ""
        if attribute in ("", "kind", "/kind"):
            raise Unsupported("A rule asks for the kind of a context.")
        field = self.find_field(clause.get("contextKind") or USER_KIND, attribute)
        compared = self._read_matches(field, clause["op"], clause["values"])
        if not negate:
            return compared
        return Not(compared) if field == "userId" else All((has_value(field), Not(compared)))

    def _read_matches(self, field: str, operator: str, values: Sequence[Any]) -> Condition:
        if operator == "in":
            return match_any(
                field, (format_text(value) for value in values if isinstance(value, str | int | float))
            )
        if operator in _TEXTS:
            return _compare_texts(field, operator, [value for value in values if isinstance(value, str)])
        compare = _COMPARISONS.get(operator)
        if compare is None:
            raise Unsupported(f"The operator {operator[:60]} has no equivalent.")
        if operator in ("before", "after"):
            self._dates[field] = None
        return AnyOf(tuple(compare(field, value) for value in values))

    # Segments --------------------------------------------------------------------------------------------------

    def read_segment(self, key: str) -> Condition:
        """Whether a context is in a segment. Raises Unsupported."""
        if key not in self._conditions:
            if key in self._open or len(self._open) > MAX_DEPTH:
                raise Unsupported(f"Segment {key} refers to itself.")
            self._open.append(key)
            try:
                self._conditions[key] = self._read_segment(key)
            finally:
                self._open.pop()
        return self._conditions[key]

    def _read_segment(self, key: str) -> Condition:
        segment = self._segments.get(key)
        if segment is None:
            raise Unsupported(f"Segment {key} is not in the file.")
        if segment.get("unbounded"):
            raise Unsupported(
                f"The members of segment {key} are not in the file, because it is a big segment."
            )
        included = self._match_members(segment.get("included"), segment.get("includedContexts"))
        excluded = self._match_members(segment.get("excluded"), segment.get("excludedContexts"))
        rules = AnyOf(tuple(self._read_segment_rule(key, rule) for rule in segment.get("rules") or ()))
        return InSegment(key, AnyOf((included, All((Not(excluded), rules)))))

    def _match_members(self, keys: list[str] | None, contexts: Iterable[ContextList] | None) -> Condition:
        lists = [
            (USER_KIND, keys or ()),
            *((each.get("contextKind") or USER_KIND, each["values"]) for each in contexts or ()),
        ]
        return AnyOf(
            tuple(match_any(self.find_field(kind, "key"), values) for kind, values in lists if values)
        )

    def _read_segment_rule(self, key: str, rule: SegmentRule) -> Condition:
        weight = rule.get("weight")
        if weight is not None and weight < TOTAL:
            raise Unsupported(f"Segment {key} has a percentage of users, which a segment cannot have.")
        return All(tuple(map(self.read_condition, rule["clauses"])))


_TEXTS = {"startsWith": "STR_STARTS_WITH", "endsWith": "STR_ENDS_WITH", "contains": "STR_CONTAINS"}


def _compare_texts(field: str, operator: str, values: Sequence[str]) -> Condition:
    if "" in values:
        return has_value(field)
    return Test(field, _TEXTS[operator], tuple(dict.fromkeys(values))) if values else AnyOf()


def _compare_number(relation: str, field: str, value: Any) -> Condition:
    return compare_number(field, relation, value) if is_number(value) else AnyOf()


def _compare_date(field: str, value: Any, *, before: bool) -> Condition:
    test = compare_with_moment(before=True, moment=_read_time(value), field=field)
    return test if before else Test(field, "DATE_AFTER", value=test.value)


def _compare_version(relation: str, field: str, value: Any) -> Condition:
    return compare_versions(field, relation, format_text(value))


def _read_time(value: Any) -> datetime:
    """A time in milliseconds since 1970, or in RFC 3339."""
    if is_number(value):
        return read_moment(value / 1000)
    moment = read_date_time(str(value))
    if moment.tzinfo is None:
        raise Unsupported(f"{str(value)[:60]} is not a date-time.")
    return moment


_COMPARISONS: Mapping[str, Callable[[str, Any], Condition]] = {
    "matches": lambda field, value: Test(field, "REGEX", value=format_text(value)),
    "lessThan": partial(_compare_number, "<"),
    "lessThanOrEqual": partial(_compare_number, "<="),
    "greaterThan": partial(_compare_number, ">"),
    "greaterThanOrEqual": partial(_compare_number, ">="),
    "before": partial(_compare_date, before=True),
    "after": partial(_compare_date, before=False),
    "semVerEqual": partial(_compare_version, "="),
    "semVerLessThan": partial(_compare_version, "<"),
    "semVerGreaterThan": partial(_compare_version, ">"),
}
