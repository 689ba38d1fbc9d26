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
        return literals.version(text) is not None or text.isalnum()
    return literals.constraint_instant(text) is not None


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
    return any(is_blank(value) for value in values) or "" in context.given.values()


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


def depends_differently(flag: Definition, found: Recording) -> bool:
    """Needs a parent to be off, wants a variant of a parent that has none, or one that is not there."""
    for dependency in flag.get("dependencies") or []:
        parent = found.definitions.get(dependency["feature"])
        if dependency.get("enabled") is False or parent is None:
            return True
        if dependency.get("variants") and (
            not parent.get("variants") or "disabled" in dependency["variants"]
        ):
            return True
    return False


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
    "userWithId is evaluated, as in SDKs": any_strategy(lambda strategy: strategy["name"] == "userWithId"),
    "disabled strategies never make a result unknown": any_strategy(
        lambda strategy: strategy.get("disabled")
    ),
    "parents count as in SDKs": lambda case: depends_differently(case.flag, case.found),
    "strategy variants stick and group as their strategy": any_strategy(has_stickiness_of_its_own),
    "an address is no one to stick to": lambda case: (
        any(variants(case.flag)) and not {"userId", "sessionId"} & case.context.values.keys()
    ),
    "a property userId is the userId": lambda case: "userId" in case.sent.get("properties", {}),
    "hashing is over UTF-8": lambda case: hashes_beyond_ascii(case.flag, case.context),
    "numbers, versions and times are read as in SDKs": any_constraint(reads_differently),
    "IN_CIDR works": any_constraint(lambda constraint, context: constraint["operator"] == "IN_CIDR"),
    "an empty text is a text": lambda case: has_blank_text(case.flag, case.context, case.found),
    "a missing segment fails": any_strategy(lambda strategy: 404 in (strategy.get("segments") or [])),
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


def judged(found: Recording) -> Iterator[Judged]:
    for flag in compared(found):
        rules = partings(flag.name, flag.context, found)
        yield Judged(found.name, flag.name, flag.context, flag.ours == flag.recorded, rules)
