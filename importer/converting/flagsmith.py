"""Flagsmith's environment document: flags, overrides for segments and identities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import md5
from typing import Any, Literal, NotRequired

import orjson
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from importer.converting.conditions import (
    ALWAYS,
    MAX_DEPTH,
    NEVER,
    All,
    Condition,
    InSegment,
    Not,
    Test,
    Unsupported,
    compare_number,
    compare_versions,
    has_value,
    match_any,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text, validate
from importer.converting.flags import Flag, Outcome, Result, Rule, Share, Source, Split, add_value
from importer.converting.strategies import pick_share

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
    """``percentage`` is the percentage of users in a segment, with the hashed context field."""

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
        """``is_needed``: the segment holds only if the rule does, so the rule may contain the percentage."""
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
    """A number compares numbers, a value that ends in :semver versions, any other text."""
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


NAME, TITLE = "flagsmith", "Flagsmith"


class Feature(TypedDict):
    id: NotRequired[int]
    name: str


class Option(TypedDict):
    value: Any


class MultivariateValue(TypedDict):
    id: NotRequired[int | None]
    percentage_allocation: float
    multivariate_feature_option: Option
    mv_fs_value_uuid: NotRequired[str | None]


class FeatureSegment(TypedDict):
    priority: NotRequired[int | None]


class FeatureState(TypedDict):
    feature: Feature
    enabled: bool
    feature_state_value: NotRequired[Any]
    django_id: NotRequired[int | None]
    featurestate_uuid: NotRequired[str | None]
    feature_segment: NotRequired[FeatureSegment | None]
    multivariate_feature_state_values: NotRequired[list[MultivariateValue] | None]


class ProjectSegment(Segment):
    feature_states: NotRequired[list[FeatureState] | None]


class Project(TypedDict):
    segments: NotRequired[list[ProjectSegment] | None]


class IdentityOverride(TypedDict):
    identifier: str
    identity_features: NotRequired[list[FeatureState] | None]


class Environment(TypedDict):
    api_key: NotRequired[str]
    name: NotRequired[str]
    project: NotRequired[Project]
    feature_states: list[FeatureState]
    identity_overrides: NotRequired[list[IdentityOverride] | None]


_ENVIRONMENT = TypeAdapter(Environment)


def recognize(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("feature_states"), list)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError."""
    reader = _Reader(validate(_ENVIRONMENT, document))
    return Source(TITLE, list(reader.flags()), {"identifier of an identity": "userId"})


class _Reader:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.prefix = f"{environment.get('api_key', '')}_"
        self.segments = (environment.get("project") or {}).get("segments") or []
        self._segments: dict[int, tuple[SegmentReader, InSegment]] = {}
        self.overrides: dict[str, list[tuple[float, ProjectSegment, FeatureState]]] = {}
        for segment in self.segments:
            for state in segment.get("feature_states") or ():
                listed = self.overrides.setdefault(state["feature"]["name"], [])
                listed.append((_get_priority(state), segment, state))
        self.identities: dict[str, list[tuple[str, FeatureState]]] = {}
        for identity in environment.get("identity_overrides") or ():
            for state in identity.get("identity_features") or ():
                listed_states = self.identities.setdefault(state["feature"]["name"], [])
                listed_states.append((identity["identifier"], state))

    def flags(self) -> Iterator[Flag]:
        for index, state in enumerate(self.environment["feature_states"]):
            flag = Flag(state["feature"]["name"], f"feature_states[{index}]")
            try:
                self._read(flag, state)
            except Unsupported as error:
                flag.add_missing("segments", str(error))
            yield flag

    def _read(self, flag: Flag, default: FeatureState) -> None:
        flag.rules = [*self._read_identity_rules(flag), *self._read_segment_rules(flag)]
        flag.rules.append(Rule(self._read_result(flag, default), title="Default"))

    def _read_identity_rules(self, flag: Flag) -> Iterator[Rule]:
        """A rule for each distinct state of identities."""
        members: dict[Outcome, list[str]] = {}
        for identifier, state in self.identities.get(flag.name, ()):
            outcome = self._read_result(flag, state)
            if isinstance(outcome, Split):
                raise Unsupported("An identity has percentages of its own.")
            members.setdefault(outcome, []).append(identifier)
        for outcome, identifiers in members.items():
            yield Rule(outcome, match_any("userId", identifiers), "Identities")

    def _read_segment_rules(self, flag: Flag) -> Iterator[Rule]:
        """The override with the lowest priority wins; of equal ones, the first."""
        for _, segment, state in sorted(self.overrides.get(flag.name, ()), key=lambda override: override[0]):
            reader, condition = self._read_segment(segment)
            yield Rule(
                self._limit_to_segment(self._read_result(flag, state), reader),
                condition,
                f"Segment {segment['name']}",
            )

    def _read_segment(self, segment: ProjectSegment) -> tuple[SegmentReader, InSegment]:
        key = id(segment)
        if key not in self._segments:
            reader = SegmentReader(segment, self.prefix)
            self._segments[key] = reader, InSegment(segment["name"], reader.read())
        return self._segments[key]

    def _limit_to_segment(self, result: Outcome | Split, reader: SegmentReader) -> Outcome | Split:
        """Limits the result to the share of users in a segment."""
        if reader.percentage is None:
            return result
        if isinstance(result, Split):
            raise Unsupported("A segment with a percentage of users shares out variants.")
        percentage, field, pick_percentage = reader.percentage
        shares = (Share(result, percentage), Share(Result.NEXT, 100 - percentage))

        def pick(identifier: str) -> Outcome:
            return result if pick_percentage(identifier) <= percentage else Result.NEXT

        return Split(shares, field, pick)

    def _read_result(self, flag: Flag, state: FeatureState) -> Outcome | Split:
        value = state.get("feature_state_value")
        if not state["enabled"]:
            if value is not None:
                sentence = (
                    f"Where it is off, its value is {value!r}; here, applications get their own default."
                )
                flag.add_difference("off", sentence[:300])
            return Result.OFF
        options = state.get("multivariate_feature_state_values") or []
        outcome = _read_outcome(flag, value)
        return self._split(flag, state, outcome, options) if options else outcome

    def _split(
        self, flag: Flag, state: FeatureState, control: Outcome, options: Sequence[MultivariateValue]
    ) -> Split:
        key = str(state.get("django_id") or state.get("featurestate_uuid") or "")
        shares = [
            Share(
                _read_outcome(flag, option["multivariate_feature_option"]["value"]),
                option["percentage_allocation"],
            )
            for option in sorted(options, key=_make_sort_key)
        ]
        shares.append(Share(control, max(0.0, 100 - sum(share.weight for share in shares))))

        def pick(identifier: str) -> Outcome:
            return pick_share(shares, hash_to_percentage([key, self.prefix + identifier]))

        return Split(tuple(shares), "userId", pick)


def _make_sort_key(option: Mapping[str, Any]) -> Any:
    return option.get("id") or 0, option.get("mv_fs_value_uuid") or ""


def _get_priority(state: FeatureState) -> float:
    priority = (state.get("feature_segment") or {}).get("priority")
    return float("inf") if priority is None else priority


def _read_outcome(flag: Flag, value: Any) -> Outcome:
    return Result.ON if value is None else add_value(flag.values, value)
