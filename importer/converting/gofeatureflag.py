"""GO Feature Flag's file: variations, and targeting rules in a query language of its own or in JSONLogic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired

import orjson
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from importer.converting.comparisons import compare_with_moment, read_date_time
from importer.converting.conditions import All, Condition, Not, Unsupported
from importer.converting.files import validate
from importer.converting.flags import (
    Flag,
    Outcome,
    Result,
    Rule,
    Share,
    Source,
    Split,
    find_outcome,
    is_boolean,
)
from importer.converting.gofeatureflag_queries import Query
from importer.converting.hashing import hash_fnv1a_32
from importer.converting.json_logic import Logic
from importer.converting.rollouts import pick_share

NAME, TITLE = "gofeatureflag", "GO Feature Flag"
SIZE = 100_000  # of its buckets
USERS = frozenset({"key", "targetingKey"})


class TargetingRule(TypedDict):
    name: NotRequired[str | None]
    query: NotRequired[str | None]
    variation: NotRequired[str | bool | None]
    percentage: NotRequired[dict[str, float] | None]
    progressiveRollout: NotRequired[dict[str, Any] | None]
    disable: NotRequired[bool | None]


class Experimentation(TypedDict):
    start: NotRequired[str | None]
    end: NotRequired[str | None]


class Definition(TypedDict):
    variations: Annotated[dict[str, Any], Field(min_length=1)]
    targeting: NotRequired[list[TargetingRule] | None]
    defaultRule: NotRequired[TargetingRule | None]
    disable: NotRequired[bool | None]
    bucketingKey: NotRequired[str | None]
    experimentation: NotRequired[Experimentation | None]
    scheduledRollout: NotRequired[list[Any] | None]
    metadata: NotRequired[dict[str, Any] | None]


_FLAGS = TypeAdapter(dict[str, Definition])


def recognize(document: Any) -> bool:
    first = next(iter(document.values()), None) if isinstance(document, dict) else None
    return isinstance(first, dict) and isinstance(first.get("variations"), dict)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError."""
    flags = validate(_FLAGS, document)
    return Source(
        TITLE, [_FlagReader(key, flag).read() for key, flag in flags.items()], {"targetingKey": "userId"}
    )


def find_field(attribute: str) -> str:
    return "userId" if attribute in USERS else attribute


class _FlagReader:
    def __init__(self, key: str, definition: Definition) -> None:
        self.definition, self.values = definition, definition["variations"]
        self.flag = Flag(key, key, values={} if is_boolean(self.values) else self.values)
        self.query = Query(find_field)

    def read(self) -> Flag:
        flag, definition = self.flag, self.definition
        flag.enabled = not definition.get("disable")
        flag.description = str((definition.get("metadata") or {}).get("description") or "")
        try:
            self._read()
        except Unsupported as error:
            flag.add_missing("targeting", str(error))
        is_negated = self.query.negates or any(rule.outcome is Result.OFF for rule in flag.rules[:-1])
        if is_negated and self.query.compares_text:
            flag.add_difference(
                "case", "Texts that must not be equal are compared in any case there, and as written here."
            )
        return flag

    def _read(self) -> None:
        definition, rules = self.definition, self.flag.rules
        if definition.get("scheduledRollout"):
            raise Unsupported("It has a scheduled rollout, whose steps change the flag later.")
        experimentation = definition.get("experimentation")
        if experimentation:
            rules.append(
                Rule(Result.OFF, Not(_read_period(experimentation)), "Outside of the experimentation")
            )
        for number, rule in enumerate(definition.get("targeting") or (), 1):
            if not rule.get("disable"):
                title = rule.get("name") or f"Rule {number}"
                rules.append(
                    Rule(self._read_result(rule), self._read_condition(rule.get("query") or ""), title)
                )
        default = definition.get("defaultRule")
        if default is None:
            raise Unsupported("It has no default rule, which is an error there.")
        rules.append(Rule(self._read_result(default), title="Default"))

    def _read_condition(self, query: str) -> Condition:
        if not query.lstrip().startswith("{"):
            return self.query.read(query)
        logic = Logic(find_field)
        try:
            condition = logic.read_condition(orjson.loads(query))
        except orjson.JSONDecodeError:
            raise Unsupported("A query is neither JSON nor one of its own language.") from None
        for name in sorted(logic.truths):
            self.flag.add_difference(
                "truth", f"{name} counts as true only if it is true: there, any value but 0 does."
            )
        return condition

    def _find_outcome(self, name: str | bool) -> Outcome:
        return find_outcome(name, self.values, noun="variations")

    def _read_result(self, rule: TargetingRule) -> Outcome | Split:
        variation = rule.get("variation")
        if rule.get("progressiveRollout"):
            raise Unsupported("It has a progressive rollout, whose percentage changes with time.")
        percentages = rule.get("percentage")
        if percentages:
            return self._split(percentages)
        if variation is None:
            raise Unsupported("A rule serves neither a variation nor a percentage.")
        return self._find_outcome(variation)

    def _split(self, percentages: Mapping[str, float]) -> Split:
        """Its buckets are shared out in the reverse order of names."""
        if abs(sum(percentages.values()) - 100) > 1e-6:
            raise Unsupported("The percentages of a rule are not 100 in all.")
        shares = tuple(
            Share(self._find_outcome(name), percentages[name]) for name in sorted(percentages, reverse=True)
        )

        def pick(identifier: str) -> Outcome:
            hashed = hash_fnv1a_32(self.flag.name + identifier, encoding="utf-8")
            return pick_share(shares, hashed % SIZE * 100 / SIZE)

        return Split(shares, find_field(self.definition.get("bucketingKey") or "key"), pick)


def _read_period(experimentation: Experimentation) -> Condition:
    start, end = experimentation.get("start"), experimentation.get("end")
    parts = [compare_with_moment(before=False, moment=_read_time(start))] if start else []
    return (
        All((*parts, compare_with_moment(before=True, moment=_read_time(end)))) if end else All(tuple(parts))
    )


def _read_time(text: str) -> datetime:
    moment = read_date_time(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
