"""Intended differences between the engine's results and the reference's recorded playground responses.

Each entry of PARTINGS describes one: which flag definitions and contexts it affects, and why the engine is right.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from playground.engine import literals
from playground.engine.context import Context
from tests.playground.recordings import Recording, compared

Definition = Mapping[str, Any]


def strategies(flag: Definition) -> list[Definition]:
    return list(flag.get("strategies") or [])


def variants(flag: Definition) -> Iterator[Definition]:
    yield from flag.get("variants") or []
    for strategy in strategies(flag):
        yield from strategy.get("variants") or []


def constraints(flag: Definition, found: Recording) -> Iterator[Definition]:
    for strategy in strategies(flag):
        yield from strategy.get("constraints") or []
        for segment in strategy.get("segments") or []:
            yield from found.segments.get(segment, {}).get("constraints") or []


PLAIN_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def is_plain(family: str, text: str | None) -> bool:
    """Whether every reader agrees on a text: the reference's (JavaScript's) are more lenient than SDKs'."""
    if text is None:
        return True
    if family == "NUM":
        return bool(PLAIN_NUMBER.fullmatch(text)) or text.isalpha()
    if family == "SEMVER":
        return literals.read_version(text) is not None or text.isalnum()
    return literals.read_constraint_instant(text) is not None


def reads_differently(constraint: Definition, context: Context) -> bool:
    family = str(constraint.get("operator")).partition("_")[0]
    if family not in ("NUM", "SEMVER", "DATE"):
        return False
    sent = context.lookup(constraint["contextName"])
    return not (is_plain(family, str(constraint.get("value"))) and is_plain(family, sent))


def is_blank(text: object) -> bool:
    return not str(text).strip()


def has_blank_text(flag: Definition, context: Context, found: Recording) -> bool:
    """A blank value of a STR_ constraint, or an empty text in the context."""
    values = (
        value
        for constraint in constraints(flag, found)
        if str(constraint["operator"]).startswith("STR_")
        for value in constraint["values"]
    )
    return any(is_blank(value) for value in values) or "" in context.fields.values()


def has_stickiness_of_its_own(strategy: Definition) -> bool:
    """Variants that name another stickiness than their strategy, or that have no group of their own."""
    own = strategy.get("variants") or []
    parameters = strategy.get("parameters") or {}
    stickiness = parameters.get("stickiness", "default")
    return bool(own) and (own[0].get("stickiness") != stickiness or "groupId" not in parameters)


def hashes_beyond_ascii(flag: Definition, context: Context) -> bool:
    texts = [flag["name"], *context.values.values()]
    texts += [str((strategy.get("parameters") or {}).get("groupId")) for strategy in strategies(flag)]
    return not all(text.isascii() for text in texts)


def needs_parent_off(flag: Definition, found: Recording) -> bool:
    return any(each.get("enabled") is False for each in flag.get("dependencies") or [])


def needs_parent_that_is_not_there(flag: Definition, found: Recording) -> bool:
    return any(each["feature"] not in found.definitions for each in flag.get("dependencies") or [])


def needs_variant_that_parent_lacks(flag: Definition, found: Recording) -> bool:
    """Of a parent that has no variants, or the variant "disabled"."""
    return any(
        each.get("variants")
        and (not found.definitions.get(each["feature"], {}).get("variants") or "disabled" in each["variants"])
        for each in flag.get("dependencies") or []
    )


class Case(NamedTuple):
    """A flag for which a request was recorded."""

    flag: Definition
    context: Context
    sent: Mapping[str, Any]
    found: Recording


def any_strategy(holds: Callable[[Definition], object]) -> Callable[[Case], bool]:
    return lambda case: any(holds(strategy) for strategy in strategies(case.flag))


def any_constraint(holds: Callable[[Definition, Context], object]) -> Callable[[Case], bool]:
    return lambda case: any(
        holds(constraint, case.context) for constraint in constraints(case.flag, case.found)
    )


PARTINGS: dict[str, Callable[[Case], object]] = {
    "parents that must be off": lambda case: needs_parent_off(case.flag, case.found),
    "variants of a parent": lambda case: needs_variant_that_parent_lacks(case.flag, case.found),
    "unknown parents": lambda case: needs_parent_that_is_not_there(case.flag, case.found),
    "missing segments": any_strategy(lambda strategy: 404 in (strategy.get("segments") or [])),
    "strategy `userWithId`": any_strategy(lambda strategy: strategy["name"] == "userWithId"),
    "operator `IN_CIDR`": any_constraint(lambda constraint, context: constraint["operator"] == "IN_CIDR"),
    "numbers, versions and dates": any_constraint(reads_differently),
    "empty strings": lambda case: has_blank_text(case.flag, case.context, case.found),
    "non-ASCII identifiers": lambda case: hashes_beyond_ascii(case.flag, case.context),
    "`userId` among the properties": lambda case: "userId" in case.sent.get("properties", {}),
    "stickiness of strategy variants": any_strategy(has_stickiness_of_its_own),
    "`remoteAddress` as stickiness": lambda case: (
        any(variants(case.flag)) and not {"userId", "sessionId"} & case.context.values.keys()
    ),
    "disabled strategies": any_strategy(lambda strategy: strategy.get("disabled")),
}


def partings(name: str, sent: Mapping[str, Any], found: Recording) -> set[str]:
    """The rules that apply to a flag, or to a flag it depends on."""
    flag = found.definitions[name]
    parents = [dependency["feature"] for dependency in flag.get("dependencies") or []]
    flags = [flag, *(found.definitions[parent] for parent in parents if parent in found.definitions)]
    cases = [Case(each, Context(sent), sent, found) for each in flags]
    return {rule for rule, applies in PARTINGS.items() if any(applies(case) for case in cases)}


class Judged(NamedTuple):
    """A recorded flag, whether it is equal here, and the rules that apply to it."""

    state: str
    name: str
    context: Mapping[str, Any]
    equal: bool
    partings: set[str]
    is_seen_by_applications: bool
    """Whether the difference is in what the frontend API answers: the flag's state, and its variant if it is on."""


def judged(found: Recording) -> Iterator[Judged]:
    for flag in compared(found):
        rules = partings(flag.name, flag.context, found)
        seen = frontend_part(flag.ours) != frontend_part(flag.recorded)
        yield Judged(found.name, flag.name, flag.context, flag.ours == flag.recorded, rules, seen)


def frontend_part(feature: Mapping[str, Any]) -> Any:
    variant = feature["variant"]
    return feature["isEnabled"] and (variant["name"], variant.get("payload"))


def first_parting(flag: Judged) -> str:
    """The rule that a flag is counted with if several apply: the first in PARTINGS."""
    return next(rule for rule in PARTINGS if rule in flag.partings)
