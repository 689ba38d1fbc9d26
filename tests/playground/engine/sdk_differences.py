"""The kinds of flags and contexts for which an SDK gives another result than this engine.

docs/sdk.md lists them under the same names. Each predicate says whether a flag, in this context, is of the kind.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from playground.engine import literals
from playground.engine.context import Context

Document = Mapping[str, Any]

PLAIN_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")
WHOLE_NUMBER = re.compile(r"[0-9]+")
PLAIN_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?")


class Case(NamedTuple):
    """A flag, evaluated for a context. `fault`: why SDKs cannot read the flag, None if they can."""

    flag: Document
    context: Context
    sent: Document
    flags: Mapping[str, Document]
    segments: Mapping[int, Document]
    fault: str | None

    @property
    def strategies(self) -> list[Document]:
        return list(self.flag.get("strategies") or [])

    @property
    def constraints(self) -> Iterator[Document]:
        for strategy in self.strategies:
            yield from strategy.get("constraints") or []
            for segment in strategy.get("segments") or []:
                yield from self.segments.get(segment, {}).get("constraints") or []

    def parameters(self, name: str) -> list[str]:
        return [str(strategy["parameters"].get(name, "")) for strategy in self.strategies]

    def has(self, *names: str) -> list[Document]:
        """The strategies of these types."""
        return [strategy for strategy in self.strategies if strategy["name"] in names]


def is_read_otherwise(case: Case) -> bool:
    """Whether JavaScript reads the value of a constraint, or of the context, in another way."""
    return any(
        not is_plain(constraint["operator"], text)
        for constraint in case.constraints
        for text in (constraint.get("value"), compared_value(case, constraint))
        if text is not None
    )


def compared_value(case: Case, constraint: Document) -> str | None:
    is_date = constraint["operator"].startswith("DATE_")
    return case.context.lookup("currentTime" if is_date else constraint["contextName"])


def is_plain(operator: str, text: str) -> bool:
    family = operator.partition("_")[0]
    if family == "NUM":
        return bool(PLAIN_NUMBER.fullmatch(text))
    if family == "SEMVER":
        return literals.read_version(text) is not None
    return family != "DATE" or literals.read_constraint_instant(text) is not None


def has_padded_text(case: Case) -> bool:
    """Whether a list of texts has values that are blank or have spaces around them."""
    values = (value for constraint in case.constraints for value in constraint.get("values") or [])
    return any(not value or value != value.strip() for value in values)


def has_own_stickiness(strategy: Document) -> bool:
    variants = strategy.get("variants") or []
    own = variants[0].get("stickiness") if variants else None
    return bool(own) and own != (strategy["parameters"].get("stickiness") or "default")


def hashes_beyond_ascii(case: Case) -> bool:
    values = [value for value in case.context.values.values() if isinstance(value, str)]
    return not all(text.isascii() for text in (case.flag["name"], *values, *case.parameters("groupId")))


def has_no_group(strategy: Document) -> bool:
    hashes = "ollout" in strategy["name"] or strategy.get("variants")
    return bool(hashes) and not strategy["parameters"].get("groupId")


def is_plain_address(text: str) -> bool:
    return bool(PLAIN_ADDRESS.fullmatch(text))


def has_odd_address(case: Case) -> bool:
    texts = [
        value
        for constraint in case.constraints
        if constraint["operator"] == "IN_CIDR"
        for value in constraint["values"]
    ]
    for strategy in case.has("remoteAddress"):
        texts += str(strategy["parameters"].get("IPs", "")).split(", ")
    sent = case.context.lookup("remoteAddress") or ""
    return bool(texts) and not ("/" not in sent and all(map(is_plain_address, [*texts, sent])))


def has_odd_user_list(case: Case) -> bool:
    lists = [str(strategy["parameters"].get("userIds", "")) for strategy in case.has("userWithId")]
    return any(text != text.strip() or not all(text.split(",")) for text in lists)


def has_word_class(case: Case) -> bool:
    """Whether a pattern has a class that matches beyond ASCII in Yggdrasil."""
    patterns = (
        str(constraint.get("value")) for constraint in case.constraints if constraint["operator"] == "REGEX"
    )
    return any(re.search(r"\\[dwsb]", pattern, re.IGNORECASE) for pattern in patterns)


YGGDRASIL: dict[str, Callable[[Case], object]] = {
    "an empty `currentTime`": lambda case: case.sent.get("currentTime") == "",
    "classes of regular expressions": has_word_class,
    "parents without `groupId`": lambda case: any(
        has_no_group(strategy)
        for each in case.flag.get("dependencies") or []
        for strategy in case.flags.get(each["feature"], {}).get("strategies") or []
    ),
}
NODE: dict[str, Callable[[Case], object]] = {
    "unreadable parts": lambda case: case.fault,
    "numbers, versions and dates": is_read_otherwise,
    "dates of other fields": lambda case: any(
        constraint["operator"].startswith("DATE_") and constraint["contextName"] != "currentTime"
        for constraint in case.constraints
    ),
    "percentages": lambda case: (
        not all(
            WHOLE_NUMBER.fullmatch(text) or not text
            for text in (*case.parameters("rollout"), *case.parameters("percentage"))
        )
    ),
    "strategies without `groupId`": lambda case: any(map(has_no_group, case.strategies)),
    "strategy variants with a stickiness of their own": lambda case: any(
        map(has_own_stickiness, case.strategies)
    ),
    "`userId`, `sessionId` or `remoteAddress` among the properties": lambda case: (
        {"userId", "sessionId", "remoteAddress"} & case.sent.get("properties", {}).keys() - case.sent.keys()
    ),
    "empty values in the context": lambda case: "" in case.context.values.values(),
    "spaces and empty texts in lists": has_padded_text,
    "addresses": has_odd_address,
    "lists of users": has_odd_user_list,
    "non-ASCII identifiers": hashes_beyond_ascii,
    "variants of a parent without variants": lambda case: any(
        each.get("variants") and not case.flags.get(each["feature"], {}).get("variants")
        for each in case.flag.get("dependencies") or []
    ),
}


def kinds_of(
    kinds: Mapping[str, Callable[[Case], object]],
    name: str,
    sent: Document,
    state: Document,
    faults: Mapping[str, str | None],
) -> set[str]:
    """Those of a flag and of the flags that it depends on. `faults`: why SDKs cannot read a flag, by name."""
    flags = {flag["name"]: flag for flag in state["features"]}
    segments = {segment["id"]: segment for segment in state["segments"]}
    parents = [dependency["feature"] for dependency in flags[name].get("dependencies") or []]
    cases = [
        Case(flags[each], Context(sent), sent, flags, segments, faults[each])
        for each in (name, *parents)
        if each in flags
    ]
    return {kind for kind, applies in kinds.items() if any(applies(case) for case in cases)}
