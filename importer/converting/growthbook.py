"""GrowthBook's features: the answer of its SDK endpoint, with saved groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from importer.converting.conditions import Unsupported
from importer.converting.files import validate
from importer.converting.flags import (
    Flag,
    Outcome,
    Parent,
    Result,
    Rule,
    Share,
    Source,
    Split,
    add_value,
    find_name,
    hash_fnv1a_32,
)
from importer.converting.growthbook_conditions import ID, Conditions, find_field

NAME, TITLE = "growthbook", "GrowthBook"
SIZES = {1: 1_000, 2: 10_000}  # of the buckets of each version of its hash
INFORMATION = {
    "name",
    "phase",
    "meta",
    "tracks",
    "metadata",
    "description",
    "enabled",
    "fallbackAttribute",
    "disableStickyBucketing",
    "bucketVersion",
    "minBucketVersion",
}
"""Members of a rule that do not affect results, unless results are stored for users ("sticky bucketing")."""


class ParentCondition(TypedDict):
    id: str
    condition: dict[str, Any]
    gate: NotRequired[bool]


class Feature(TypedDict):
    """Rules are read separately, so that an invalid one affects only its feature."""

    defaultValue: NotRequired[Any]
    rules: NotRequired[list[dict[str, Any]] | None]


@with_config(ConfigDict(extra="allow"))
class FeatureRule(TypedDict):
    id: NotRequired[str | None]
    condition: NotRequired[dict[str, Any] | None]
    parentConditions: NotRequired[list[ParentCondition] | None]
    force: NotRequired[Any]
    variations: NotRequired[list[Any] | None]
    weights: NotRequired[list[float] | None]
    coverage: NotRequired[float | None]
    hashAttribute: NotRequired[str | None]
    hashVersion: NotRequired[int | None]
    seed: NotRequired[str | None]
    key: NotRequired[str | None]


class Payload(TypedDict):
    features: dict[str, Feature]
    savedGroups: NotRequired[dict[str, Any] | None]


_PAYLOAD = TypeAdapter(Payload)
_RULE = TypeAdapter(FeatureRule)


def recognize(document: Any) -> bool:
    features = document.get("features") if isinstance(document, dict) else None
    first = next(iter(features.values()), None) if isinstance(features, dict) else None
    return isinstance(first, dict) and ("defaultValue" in first or "rules" in first)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError."""
    payload = validate(_PAYLOAD, document)
    features = payload["features"]
    groups = payload.get("savedGroups") or {}
    readers = [_FeatureReader(key, feature, groups, features) for key, feature in features.items()]
    flags = [reader.read() for reader in readers]
    renamed = {field: here for reader in readers for field, here in reader.conditions.renamed.items()}
    return Source(TITLE, flags, renamed)


class _FeatureReader:
    def __init__(
        self, key: str, feature: Feature, groups: Mapping[str, Any], features: Mapping[str, Feature]
    ) -> None:
        self.feature, self.features = feature, features
        self.flag = Flag(key, f"features.{key}")
        self.conditions = Conditions(groups)
        self.rules = [
            validate(_RULE, rule, f"{self.flag.path}.rules[{index}]")
            for index, rule in enumerate(feature.get("rules") or ())
        ]
        self.values = _Values(feature, self.rules)

    def read(self) -> Flag:
        flag = self.flag
        flag.values = self.values.named
        try:
            for number, rule in enumerate(self.rules, 1):
                self._read_rule(rule, f"Rule {number}")
            flag.rules.append(Rule(self.values.outcome(self.feature.get("defaultValue")), title="Default"))
        except Unsupported as error:
            flag.add_missing("rules", str(error))
        return flag

    def _read_rule(self, rule: FeatureRule, title: str) -> None:
        decisive = {name for name, value in rule.items() if value} - INFORMATION
        if unknown := sorted(decisive - FeatureRule.__annotations__.keys()):
            raise Unsupported(f"A rule has {', '.join(unknown)[:200]}, which has no equivalent.")
        for parent in rule.get("parentConditions") or ():
            self._read_parent(parent, is_first=not self.flag.rules)
        if rule.get("force") is None and rule.get("variations") is None:
            return
        condition = self.conditions.read(rule.get("condition") or {})
        self.flag.rules.append(Rule(self._read_result(rule), condition, title))

    def _read_parent(self, parent: ParentCondition, *, is_first: bool) -> None:
        """A prerequisite of the whole feature. Those of single rules are not supported, because parents
        belong to a flag.
        """
        key, condition = parent["id"], parent["condition"]
        if not parent.get("gate") or not is_first:
            raise Unsupported(f"Only some of its rules have the prerequisite {key}.")
        feature = self.features.get(key)
        if feature is None:
            raise Unsupported(f"Its prerequisite {key} is not in the file.")
        values = _Values(feature, [validate(_RULE, rule) for rule in feature.get("rules") or ()])
        self.flag.parents.append(_make_parent(key, condition, values))

    def _read_result(self, rule: FeatureRule) -> Outcome | Split:
        variations, coverage = rule.get("variations"), rule.get("coverage")
        if rule.get("force") is not None:
            outcome = self.values.outcome(rule.get("force"))
            return outcome if coverage is None else self._split(rule, [(outcome, coverage)], rule.get("seed"))
        assert variations is not None
        outcomes = list(map(self.values.outcome, variations))
        if len(outcomes) < 2:  # an experiment needs two
            return Result.NEXT
        weights = _read_weights(rule.get("weights"), len(outcomes))
        shares = [
            (outcome, weight * _limit_coverage(coverage))
            for outcome, weight in zip(outcomes, weights, strict=True)
        ]
        return self._split(rule, shares, rule.get("seed") or rule.get("key"), weights)

    def _split(
        self,
        rule: FeatureRule,
        shares: Sequence[tuple[Outcome, float]],
        seed: str | None,
        weights: Sequence[float] = (1,),
    ) -> Split:
        """Shares of buckets, each at the beginning of the range for its weight."""
        version = rule.get("hashVersion") or 1
        if version not in SIZES:
            raise Unsupported(f"Version {version} of its hash is not known.")
        seed = seed or self.flag.name
        field = find_field(rule.get("hashAttribute") or ID)
        left = max(0.0, 1 - sum(share for _, share in shares))
        every = [Share(outcome, share) for outcome, share in shares]
        if left > 1e-9:
            every.append(Share(Result.NEXT, left))

        def pick(identifier: str) -> Outcome:
            position, start = _compute_bucket(seed, identifier, version), 0.0
            for (outcome, share), weight in zip(shares, weights, strict=True):
                if start <= position < start + share:
                    return outcome
                start += weight
            return Result.NEXT

        return Split(tuple(every), field, pick)


class _Values:
    """The possible values of a feature, each with a name."""

    def __init__(self, feature: Feature, rules: Sequence[FeatureRule]) -> None:
        listed: list[Any] = [feature.get("defaultValue")]
        for rule in rules:
            listed += [rule["force"]] if rule.get("force") is not None else rule.get("variations") or []
        self.is_boolean = all(value is None or isinstance(value, bool) for value in listed)
        self.named: dict[str, Any] = {}
        if not self.is_boolean:
            for value in listed:
                if value is not None:
                    add_value(self.named, value)

    def name(self, value: Any) -> str | None:
        return find_name(self.named, value)

    def outcome(self, value: Any) -> Outcome:
        if value is None:
            return Result.OFF
        if self.is_boolean:
            return Result.ON if value else Result.OFF
        name = self.name(value)
        if name is None:  # NaN, which YAML supports, equals nothing
            raise Unsupported("One of its values is not a number that JSON has.")
        return name


def _make_parent(key: str, condition: Mapping[str, Any], values: _Values) -> Parent:
    """The parent of a prerequisite on a feature's value."""
    wanted = condition.get("value")
    if list(condition) == ["value"] and isinstance(wanted, bool) and values.is_boolean:
        return Parent(key, wanted)
    if condition == {"value": {"$exists": True}} and not values.is_boolean:
        return Parent(key)
    name = (
        values.name(wanted)
        if list(condition) == ["value"] and isinstance(wanted, str | int | float)
        else None
    )
    if name is None:
        raise Unsupported(f"Its prerequisite {key} compares its value in a way that has no equivalent.")
    return Parent(key, True, (name,))


def _read_weights(weights: Sequence[float] | None, count: int) -> Sequence[float]:
    is_valid = weights and len(weights) == count and min(weights) >= 0 and 0.99 <= sum(weights) <= 1.01
    return weights if weights and is_valid else [1 / count] * count


def _limit_coverage(coverage: float | None) -> float:
    return 1.0 if coverage is None else min(1.0, max(0.0, coverage))


def _compute_bucket(seed: str, identifier: str, version: int) -> float:
    """Computes a bucket from 0 to 1."""
    hashed = (
        hash_fnv1a_32(identifier + seed)
        if version == 1
        else hash_fnv1a_32(str(hash_fnv1a_32(seed + identifier)))
    )
    return hashed % SIZES[version] / SIZES[version]
