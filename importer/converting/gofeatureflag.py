"""GO Feature Flag's file: variations, and targeting rules in its own query language or in JSONLogic.

``and`` and ``or`` have equal precedence, from the left. ``not`` precedes a parenthesis. Texts are compared ignoring
case, except in lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired

import orjson
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from importer.converting.conditions import (
    MAX_DEPTH,
    All,
    Condition,
    Not,
    Test,
    Unsupported,
    compare_number,
    compare_versions,
    compare_with_moment,
    has_value,
    is_number,
    match_any,
    match_texts_in_any_case,
    read_date_time,
)
from importer.converting.conditions import Any as AnyOf
from importer.converting.files import format_text, validate
from importer.converting.flags import (
    Flag,
    Outcome,
    Result,
    Rule,
    Share,
    Source,
    Split,
    find_outcome,
    hash_fnv1a_32,
    is_boolean,
)
from importer.converting.json_logic import Logic
from importer.converting.strategies import pick_share

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
        """Its buckets are assigned in reverse order of names."""
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


SYMBOLS = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge"}
RELATIONS = {"eq": "==", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
TEXTS = {"co": "STR_CONTAINS", "sw": "STR_STARTS_WITH", "ew": "STR_ENDS_WITH"}
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([()])|(\[[^\]]*\])|([=!<>]=|[<>])|([^\s()\[\]"=!<>]+))')
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\S*", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)


class Version(str):
    __slots__ = ()


class Query:
    """Reads the queries of a flag.

    ``compares_text`` and ``negates`` tell whether a query compares texts for equality, and whether one negates
    something.
    """

    def __init__(self, field_of: Callable[[str], str]) -> None:
        self._field_of = field_of
        self._tokens: list[str] = []
        self.compares_text = self.negates = False

    def read(self, query: str) -> Condition:
        """Reads a query. Raises Unsupported, also for invalid queries."""
        if not query.strip():
            return All()
        self._tokens = list(reversed(_split(query)))
        condition = self._read_logical(0)
        if self._tokens:
            raise _malformed(self._tokens[-1])
        return condition

    def _read_token(self) -> str:
        if not self._tokens:
            raise Unsupported("A query ends too early.")
        return self._tokens.pop()

    def _read_logical(self, depth: int) -> Condition:
        condition = self._read_term(depth)
        while self._tokens and self._tokens[-1] in ("and", "or"):
            operator = self._read_token()
            other = self._read_term(depth)
            condition = All((condition, other)) if operator == "and" else AnyOf((condition, other))
        return condition

    def _read_term(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise Unsupported(f"A query is nested deeper than {MAX_DEPTH} levels.")
        token = self._read_token()
        is_negated = token == "not"
        if is_negated:
            self.negates = True
            token = self._read_token()
        if token != "(":
            if is_negated:
                raise Unsupported("not stands before something that is not in parentheses.")
            return self._read_comparison(token)
        condition = self._read_logical(depth + 1)
        if self._read_token() != ")":
            raise Unsupported("A parenthesis of a query is not closed.")
        return Not(condition) if is_negated else condition

    def _read_comparison(self, attribute: str) -> Condition:
        if attribute[:1] in '"[)':
            raise _malformed(attribute)
        field, operator = self._field_of(attribute), self._read_token().lower()
        operator = SYMBOLS.get(operator, operator)
        if operator == "pr":
            return has_value(field)
        value = _read_value(self._read_token())
        if operator == "in":
            return self._read_member(field, value)
        if operator in TEXTS and isinstance(value, str):
            return (
                Test(field, TEXTS[operator], (value,), case_insensitive=True) if value else has_value(field)
            )
        if operator == "ne":
            self.negates = True
            return self._read_different(field, value)
        return self._compare(field, operator, value)

    def _read_different(self, field: str, value: Any) -> Condition:
        if isinstance(value, Version):
            return compare_versions(field, "!=", value)
        return All((has_value(field), Not(self._compare(field, "eq", value))))

    def _compare(self, field: str, operator: str, value: Any) -> Condition:
        relation = RELATIONS.get(operator)
        if relation is None:
            raise Unsupported(f"The operator {operator[:60]} of a query has no equivalent.")
        if isinstance(value, Version):
            return compare_versions(field, "=" if relation == "==" else relation, value)
        if is_number(value):
            return compare_number(field, relation, value)
        if operator != "eq":
            raise Unsupported(f"It compares the order of {field} with what is not a number.")
        return (
            match_any(field, [format_text(value)])
            if isinstance(value, bool)
            else self._read_equal(field, value)
        )

    def _read_member(self, field: str, values: Any) -> Condition:
        """Members of a list are compared exactly."""
        if not isinstance(values, list):
            raise Unsupported("What follows in is not a list.")
        return match_any(field, map(format_text, values))

    def _read_equal(self, field: str, text: str) -> Condition:
        """Equality ignoring case requires a pattern, which cannot be negated: a negated one compares exactly."""
        if text.lower() == text.upper():
            return match_any(field, [text])
        self.compares_text = True
        written = Test(field, "IN", (text,), inverted=True)
        return match_texts_in_any_case(field, [text], negation=written)


def _split(query: str) -> list[str]:
    tokens, position, query = [], 0, query.rstrip()
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None:
            raise _malformed(query[position:].strip())
        tokens.append(match[match.lastindex or 0])
        position = match.end()
    return tokens


def _read_value(token: str) -> Any:
    if token[:1] in '"[':
        try:
            return orjson.loads(token)
        except orjson.JSONDecodeError:
            raise _malformed(token) from None
    if token in ("true", "false"):
        return token == "true"
    if _VERSION.fullmatch(token):
        return Version(token)
    if _NUMBER.fullmatch(token):
        return orjson.loads(token)
    raise _malformed(token)


def _malformed(text: str) -> Unsupported:
    return Unsupported(f"A query cannot be read at {text[:40]}.")
