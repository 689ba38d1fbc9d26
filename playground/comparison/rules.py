"""The rules of flags, with values of their context fields that meet and miss them.

Finds a string that probably matches a regular expression. The engine then checks it.
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import inf, nextafter
from typing import Any, NamedTuple

from playground.engine import literals, operators
from playground.engine.constraints import CompiledConstraint, Constraints
from playground.engine.context import FORMS, Context
from playground.engine.hashing import ROLLOUT_SEED, VARIANT_SEED, compute_hashes
from playground.engine.literals import objects_of, parameters_of, strings_of, to_text
from playground.engine.operators import OPERATORS
from playground.engine.strategies import Rollout, compile_strategy
from playground.engine.strategy_types import STRATEGY_TYPES
from playground.engine.variants import CompiledVariants, compile_flag_variants

Document = Mapping[str, Any]
OTHER = "other"
"""The value of a field that matches no condition, unless one lists it."""
SEARCHED = 1_000
"""Identifiers to try until one is inside a rollout, one outside, and one has each variant."""


class Rule(NamedTuple):
    """The condition of one constraint or rollout on a field, and values to try there."""

    field: str
    holds: Callable[[str | None], bool]
    values: list[str]


class StrategyRules(NamedTuple):
    """The rules of one strategy, including its segments, and identifiers that get each of its variants."""

    rules: list[Rule]
    identifiers: list[tuple[str, str]]


def read_rules(flag: Document, segments: Mapping[int, Document]) -> list[StrategyRules]:
    """The rules of each strategy of a flag, and of the flag's own variants."""
    name, compiler = to_text(flag.get("name")), Constraints()
    pairs = compiler.columns.pairs
    rules_by_strategy = []
    for document in objects_of(flag.get("strategies")):
        strategy = compile_strategy(document, name, {}, compiler)
        documents = [*objects_of(document.get("constraints")), *find_own_constraints(document)]
        rules = [
            _make_rule(constraint, constraint_document, pairs())
            for constraint, constraint_document in zip(strategy.constraints, documents, strict=False)
        ]
        for segment in document.get("segments") or ():
            constraints = objects_of(segments.get(segment, {}).get("constraints"))
            rules += [
                _make_rule(compiler.compile(constraint_document), constraint_document, pairs())
                for constraint_document in constraints
            ]
        if strategy.rollout is not None:
            rules += _make_rollout_rules(strategy.rollout, pairs())
        rules_by_strategy.append(StrategyRules(rules, _find_identifiers(strategy.variants)))
    variants = compile_flag_variants(flag.get("variants"), name, compiler.columns, compiler.shared)
    if variants is not None:
        overridden = [
            (field, value) for _, _, values, field in variants.overrides for value in sorted(values)
        ]
        rules_by_strategy.append(StrategyRules([], [*_find_identifiers(variants), *overridden]))
    return rules_by_strategy


class Condition(NamedTuple):
    """A constraint's comparison with a field. Equivalent ones are equal."""

    field: str
    operator: str
    value: str
    listed: tuple[str, ...]

    @classmethod
    def of(cls, constraint: Document) -> Condition:
        return cls(
            to_text(constraint.get("contextName")),
            to_text(constraint.get("operator")),
            to_text(constraint.get("value")),
            tuple(strings_of(constraint.get("values"))),
        )

    def values(self) -> Iterator[str]:
        """Values on both sides of the condition, as far as they can be found without searching."""
        family = OPERATORS[self.operator].family if self.operator in OPERATORS else operators.SET
        if family is operators.NETWORK:
            for network in self.listed:
                yield from _list_network_neighbors(network)
        elif family is operators.PATTERN:
            yield from (find_matching_text(self.value), "", "~")
        elif family.input != "list":
            yield from _list_neighbors(self.value.strip(" \t"))
        else:
            yield from self.listed
            if family is operators.TEXT:
                for text in self.listed:
                    yield from (f"{text}~", f"~{text}", f"~{text}~", text.upper())
            yield _make_outside_value(self.listed)


def read_conditions(flag: Document, segments: Mapping[int, Document]) -> Iterator[Condition]:
    """The conditions of a flag's strategies, their segments included."""
    for strategy in objects_of(flag.get("strategies")):
        documents = [*objects_of(strategy.get("constraints")), *find_own_constraints(strategy)]
        for segment in strategy.get("segments") or ():
            documents += objects_of(segments.get(segment, {}).get("constraints"))
        yield from map(Condition.of, documents)


def list_sticky_fields(flag: Document) -> Iterator[str]:
    """The fields that a flag hashes, and those used by overrides of its variants."""
    variants = objects_of(flag.get("variants"))
    for strategy in objects_of(flag.get("strategies")):
        parameters = parameters_of(strategy.get("parameters"))
        kind = STRATEGY_TYPES.get(to_text(strategy.get("name")))
        if kind is not None and kind.percentage:
            yield _get_sticky_field(kind.stickiness or parameters.get("stickiness", "default"))
        variants += objects_of(strategy.get("variants"))
    for variant in variants:
        yield _get_sticky_field(to_text(variant.get("stickiness")) or "default")
        yield from (to_text(each.get("contextName")) for each in objects_of(variant.get("overrides")))


def find_own_constraints(strategy: Document) -> Iterator[Document]:
    """The condition of a strategy type that lists values, as a constraint."""
    kind = STRATEGY_TYPES.get(to_text(strategy.get("name")))
    values = kind and kind.values(parameters_of(strategy.get("parameters")))
    if kind is not None and values is not None:
        yield {"contextName": kind.field, "operator": kind.operator, "values": values}


def _make_rule(constraint: CompiledConstraint, document: Document, pairs: list[tuple[str, str]]) -> Rule:
    form, field = pairs[constraint.column]
    read, test, inverted = FORMS[form], constraint.test, constraint.inverted

    def holds(text: str | None) -> bool:
        context = Context.of_texts({} if text is None else {field: text}, now="")
        return test(read(context, field)) is not inverted

    return Rule(constraint.field, holds, list(dict.fromkeys(Condition.of(document).values())))


def _make_rollout_rules(rollout: Rollout, pairs: list[tuple[str, str]]) -> list[Rule]:
    if pairs[rollout.column][0] == "never":
        return []
    field = _get_sticky_field(rollout.stickiness)

    def holds(text: str | None) -> bool:
        if text is None:
            return False
        [hashed] = compute_hashes(rollout.key, (text.encode(),), ROLLOUT_SEED)
        return hashed % 100 < rollout.threshold

    places = [
        hashed % 100
        for hashed in compute_hashes(rollout.key, _make_searched_identifiers(field), ROLLOUT_SEED)
    ]
    inside = next((n for n, position in enumerate(places, 1) if position < rollout.threshold), None)
    outside = next((n for n, place in enumerate(places, 1) if place >= rollout.threshold), None)
    values = [make_identifier(field, number) for number in (inside, outside) if number is not None]
    return [Rule(field, holds, values)]


def _find_identifiers(variants: CompiledVariants | None) -> list[tuple[str, str]]:
    """Finds an identifier for each variant."""
    if variants is None or not variants.total:
        return []
    field = _get_sticky_field(variants.stickiness)
    numbers: dict[int, int] = {}
    for number, position in enumerate(
        compute_hashes(variants.key, _make_searched_identifiers(field), VARIANT_SEED), 1
    ):
        numbers.setdefault(bisect_right(variants.limits, position % variants.total), number)
    return [(field, make_identifier(field, number)) for number in numbers.values()]


def _get_sticky_field(stickiness: str) -> str:
    return "userId" if stickiness == "default" else stickiness


@lru_cache(maxsize=20)
def _make_searched_identifiers(field: str) -> list[bytes]:
    return [make_identifier(field, number).encode() for number in range(1, SEARCHED + 1)]


def make_identifier(field: str, number: int) -> str:
    """A value of a field that no condition lists: "user-7" for userId."""
    return f"{field.removesuffix('Id')}-{number}"


_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def _make_outside_value(listed: Collection[str]) -> str:
    """A value that is not in a list and contains no member of it."""
    if not any(text.casefold() in OTHER for text in listed):
        return OTHER
    return next(text for size in range(1, 100) if (text := "~" * size) not in listed)


def _list_neighbors(value: str) -> Iterator[str]:
    """A number, date or version, and its neighbors."""
    yield value
    if (instant := literals.read_constraint_instant(value)) is not None:
        with suppress(OverflowError):
            bound = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=instant[0])
            for moment in (bound - timedelta(seconds=1), bound, bound + timedelta(seconds=1)):
                yield f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
    elif literals.read_version(value) is not None and (matched := _VERSION.match(value)):
        major, minor, patch = map(int, matched.groups())
        yield from (f"{major}.{minor}.{patch + 1}", f"{major}.{minor}.{patch}", f"{major}.{minor}.{patch}-0")
        yield from ("0.0.0-0", f"{major + 1}.0.0")
    elif (number := literals.read_constraint_number(value)) is not None:
        for near in (number - 1, number + 1, nextafter(number, -inf), nextafter(number, inf)):
            yield to_text(near)


def _list_network_neighbors(text: str) -> Iterator[str]:
    """The first and last address of a network, and the addresses before and after it."""
    parsed = literals.read_network(text)
    if parsed is not None:
        version, mask, base = parsed
        size = 1 << (32 if version == 4 else 128)
        address = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
        last = base | (size - 1) & ~mask
        for number in (base, last, base - 1, last + 1):
            if 0 <= number < size:
                yield str(address(number))
    yield from ("192.0.2.1", "2001:db8::1")


MAX_LENGTH = 1_000  # characters
_ESCAPED = {"d": "0", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a", "n": "\n", "t": "\t"}
_NAMED = {"upper": "A", "digit": "0", "space": " ", "punct": "!", "blank": " "}
_NOTHING = "bBAzZQE"
_OUTSIDE = "~a0A -"


def find_matching_text(pattern: str) -> str:
    """A string with the first of all alternatives and the fewest repetitions, at least one; "" if there is none."""
    with suppress(IndexError, RecursionError):
        return _Pattern(pattern).alternatives()
    return ""


class _Pattern:
    """Reads a pattern from left to right. Reading past its end raises IndexError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def next(self) -> str:
        self.position += 1
        return self.text[self.position - 1]

    def sees(self, characters: str) -> bool:
        return self.position < len(self.text) and self.text[self.position] in characters

    def until(self, ends: str) -> str:
        start = self.position
        while self.text[self.position] not in ends:
            self.position += 1
        return self.text[start : self.position]

    def alternatives(self) -> str:
        text = self.sequence()
        while self.sees("|"):
            self.next()
            self.sequence()
        return text

    def sequence(self) -> str:
        text = ""
        while self.position < len(self.text) and not self.sees("|)"):
            part = self.item()
            text = (text + part * self.times())[:MAX_LENGTH]
        return text

    def item(self) -> str:
        character = self.next()
        if character in "^$":
            return ""
        if character == "(":
            return self.group()
        if character == "[":
            return self.one_of()
        if character == "\\":
            return self.escaped()
        return "a" if character == "." else character

    def group(self) -> str:
        if self.sees("?"):  # flags, or the name of the group
            self.until(":)>")
            if self.next() == ")":
                return ""
        text = self.alternatives()
        self.next()
        return text

    def one_of(self) -> str:
        negated = self.sees("^")
        if negated:
            self.next()
        first = self.next()
        if first == "\\":
            first = self.escaped()
        elif first == "[" and self.sees(":"):
            first = _NAMED.get(self.named(), "a")
        members = first + self.until("]")
        while members.count("[:") > members.count(":]"):  # the bracket belonged to a class
            members += self.next() + self.until("]")
        self.next()
        return (
            next((character for character in _OUTSIDE if character not in members), "") if negated else first
        )

    def named(self) -> str:
        """The name of a class like [:upper:], after its bracket."""
        self.next()
        name = self.until(":")
        self.position += 2
        return name

    def escaped(self) -> str:
        character = self.next()
        return "" if character in _NOTHING else _ESCAPED.get(character, character)

    def times(self) -> int:
        count = 1
        if self.sees("{"):
            self.next()
            least = self.until("}").partition(",")[0]
            self.next()
            count = min(int(least), MAX_LENGTH) if least.isdecimal() else 1
        elif self.sees("*+?"):
            self.next()
        if self.sees("?"):
            self.next()
        return count
