"""Describes changes in a flag, its parts or a strategy as text, field by field."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import orjson

from flagadmin.core.document import Document
from flagadmin.core.errors import clip, list_some
from playground.engine.definitions import (
    ConstraintDefinition,
    DependencyDefinition,
    StrategyDefinition,
    VariantDefinition,
)
from playground.engine.sentences import SHOWN_VALUES
from projects.states import DETAIL_MEMBERS, NOTHING, FlagState, by_environment, match
from projects.strategies.fields import drop_sort_order
from projects.strategies.sentences import describe_constraint, summarize_strategy

MAX_LISTED = 10
STRATEGY_VARIANTS = "strategy variants"
"""The part of a change of a strategy's variants."""


@dataclass(frozen=True, slots=True)
class Change:
    """``part`` changes from ``before`` to ``after``; None where there is no value."""

    part: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.part}: + {self.after}"
        if self.after is None:
            return f"{self.part}: − {self.before}"
        return f"{self.part}: {self.before} → {self.after}"


def summary(document: Document, segments: Mapping[int, str]) -> str:
    """A one-line description of a new flag: ``release, on, strategy: On for 10 % of users, by userId``."""
    parts = [document["type"], _switch(document["enabled"])]
    parts += [f"strategy: {_describe_strategy(strategy, segments)}" for strategy in document["strategies"]]
    if document["variants"]:
        parts.append(f"variants {format_variants(document['variants'])}")
    if document["archived"]:
        parts.append("archived")
    return ", ".join(parts)


def diff(before: Document, after: Document, segments: Mapping[int, str]) -> list[Change]:
    """The changes, in the order of the flag page: the flag, its strategies, then tags, parents and links."""
    changes = [
        Change(part, text(before.get(key)), text(after.get(key)))
        for key, part, text in _PARTS
        if before.get(key) != after.get(key)
    ]
    changes += _list_strategy_changes(before["strategies"], after["strategies"], segments)
    for key, part, describe in _LISTS:
        changes += _list_changes(part, before.get(key, []), after.get(key, []), describe)
    return changes


# One value as text -----------------------------------------------------------------------------------------


def _format_text(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def _name_owner(owner: Mapping[str, Any] | None) -> str:
    return owner["name"] if owner else "none"


def _format_json(value: Any) -> str:
    return "none" if value is None else clip(orjson.dumps(value).decode())


def _format_yes(value: bool) -> str:
    return "yes" if value else "no"


def _switch(value: bool) -> str:
    return "on" if value else "off"


def format_variants(variants: list[VariantDefinition]) -> str:
    return ", ".join(describe_variant(variant) for variant in variants) or "none"


def describe_variant(variant: VariantDefinition) -> str:
    text = f"{variant['name']} {variant['weight'] / 10:g} %"
    if payload := variant.get("payload"):
        text += f" ({payload['type']} {clip(payload['value'])})"
    for override in variant.get("overrides") or ():
        text += f" (always for {override['contextName']} {list_some(override['values'], MAX_LISTED)})"
    return text


def _format_tag(tag: list[str]) -> str:
    return ":".join(tag)


def _link(link: Document) -> str:
    return f"{link['title']} ({link['url']})" if link["title"] else link["url"]


def _describe_parent(parent: DependencyDefinition) -> str:
    if not parent["enabled"]:
        return f"{parent['feature']} off"
    variants = parent["variants"]
    return f"{parent['feature']} {'with ' + list_some(variants, MAX_LISTED) if variants else 'on'}"


_PARTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("description", "description", _format_text),
    ("type", "type", _format_text),
    ("owner", "owner", _name_owner),
    ("archived", "archived", _format_yes),
    ("stale", "stale", _format_yes),
    ("impressionData", "impression data", _format_yes),
    ("enabled", "switch", _switch),
    ("variants", "variants", format_variants),
    ("payloadSchema", "payload schema", _format_json),
)
_LISTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("tags", "tag", _format_tag),
    ("parents", "depends on", _describe_parent),  # of imports
    ("dependencies", "depends on", _describe_parent),
    ("links", "link", _link),
)


def _list_changes(
    part: str, before: list[Any], after: list[Any], describe: Callable[[Any], str]
) -> Iterator[Change]:
    removed = [item for item in before if item not in after]
    added = [item for item in after if item not in before]
    yield from (Change(part, describe(item), None) for item in removed)
    yield from (Change(part, None, describe(item)) for item in added)
    if before != after and not removed and not added:
        yield Change(
            f"order of {part}s",
            list_some([describe(item) for item in before], MAX_LISTED),
            list_some([describe(item) for item in after], MAX_LISTED),
        )


# Strategies ------------------------------------------------------------------------------------------------


def _describe_strategy(strategy: StrategyDefinition, segments: Mapping[int, str]) -> str:
    """Describes a strategy: ``On for 10 % of users, by userId, where country is one of DE, NO (title; disabled)``."""
    variants = strategy["variants"] and f"variants {format_variants(strategy['variants'])}"
    extra = [text for text in (strategy["title"], variants, strategy["disabled"] and "disabled") if text]
    sentence = str(summarize_strategy(strategy, segments=segments)).removesuffix(".")
    return f"{sentence} ({'; '.join(extra)})" if extra else sentence


def _list_strategy_changes(
    before: list[StrategyDefinition], after: list[StrategyDefinition], segments: Mapping[int, str]
) -> Iterator[Change]:
    if [drop_sort_order(strategy) for strategy in before] == [
        drop_sort_order(strategy) for strategy in after
    ]:
        if before != after:
            yield Change(
                "order of strategies",
                list_some([str(s["sortOrder"]) for s in before], MAX_LISTED),
                list_some([str(s["sortOrder"]) for s in after], MAX_LISTED),
            )
        return
    removed = {str(n): strategy | {"id": str(n)} for n, strategy in enumerate(before)}
    added, is_moved = [], True
    for new in match([*removed.values()], [strategy | {"id": ""} for strategy in after]):
        if (old := removed.pop(new.get("id", ""), None)) is None:
            added.append(new)
        else:
            is_moved = is_moved and drop_sort_order(old) == drop_sort_order(new)
            yield from compare_strategies(old, new, segments)
    for gone, come in zip_longest(removed.values(), added):
        yield from _list_replaced(gone, come, segments)
    if is_moved and not removed and not added:
        yield Change(
            "order of strategies",
            "; ".join(_describe_strategy(s, segments) for s in before),
            "; ".join(_describe_strategy(s, segments) for s in after),
        )


def _list_replaced(
    old: StrategyDefinition | None, now: StrategyDefinition | None, segments: Mapping[int, str]
) -> Iterator[Change]:
    """A removed strategy, an added one, or both: different types may read the same, such as "On for everyone"."""
    before, after = (strategy and _describe_strategy(strategy, segments) for strategy in (old, now))
    if old is not None and now is not None and before == after:
        yield Change("strategy type", old["name"], now["name"])
        return
    if before is not None:
        yield Change("strategy", before, None)
    if after is not None:
        yield Change("strategy", None, after)


def compare_strategies(
    before: StrategyDefinition, after: StrategyDefinition, segments: Mapping[int, str]
) -> Iterator[Change]:
    """The changes within one strategy. The strategy type is the same."""
    if before["title"] != after["title"]:
        yield Change("title", _format_text(before["title"]), _format_text(after["title"]))
    if before["disabled"] != after["disabled"]:
        yield Change("strategy", _switch(not before["disabled"]), _switch(not after["disabled"]))
    old, new = before["parameters"], after["parameters"]
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield Change(key, _describe_parameter(key, old.get(key)), _describe_parameter(key, new.get(key)))
    yield from _list_constraint_changes(before["constraints"], after["constraints"])
    yield from _list_changes(
        "segment",
        before["segments"],
        after["segments"],
        lambda identifier: segments.get(identifier, str(identifier)),
    )
    if before["variants"] != after["variants"]:
        yield Change(
            STRATEGY_VARIANTS, format_variants(before["variants"]), format_variants(after["variants"])
        )


def _describe_parameter(key: str, value: Any) -> str | None:
    if value is None:
        return None
    return f"{value} %" if key in ("rollout", "percentage") else clip(str(value))


def _list_constraint_changes(
    before: list[ConstraintDefinition], after: list[ConstraintDefinition]
) -> Iterator[Change]:
    """Changed constraints. A removal and an addition on the same context field count as one change."""
    removed = [constraint for constraint in before if constraint not in after]
    added = [constraint for constraint in after if constraint not in before]
    for old in removed:
        same_field = [constraint for constraint in added if constraint["contextName"] == old["contextName"]]
        if same_field:
            added.remove(same_field[0])
        yield Change(
            f"condition {old['contextName']}",
            _describe_condition(old),
            _describe_changed_condition(same_field[0], old) if same_field else None,
        )
    yield from (
        Change(f"condition {constraint['contextName']}", None, _describe_condition(constraint))
        for constraint in added
    )


def _describe_condition(constraint: ConstraintDefinition) -> str:
    """Describes a constraint without its context field: ``is one of DE, NO``."""
    return describe_constraint(constraint).removeprefix(f"{constraint['contextName']} ")


def _describe_changed_condition(constraint: ConstraintDefinition, before: ConstraintDefinition) -> str:
    """Describes a changed constraint. If it has too many values to show, lists those added and removed."""
    old, new = before["values"], constraint["values"]
    if max(len(old), len(new)) <= SHOWN_VALUES:
        return _describe_condition(constraint)
    added, removed = (
        [value for value in new if value not in old],
        [value for value in old if value not in new],
    )
    parts = [
        f"{verb} {list_some(values, MAX_LISTED)}"
        for verb, values in (("added", added), ("removed", removed))
        if values
    ]
    return (
        f"{_describe_condition(constraint)} ({'; '.join(parts)})"
        if parts
        else _describe_condition(constraint)
    )


DETAILS, DEPENDENCIES, ENVIRONMENT = "details", "dependencies", "environment"


class FlagPart(NamedTuple):
    """A differing part. ``environment`` is "" for parts shared by all environments.

    ``before`` and ``after`` have the part's members: those of ``details``; ``dependencies``; or ``enabled variants
    strategies``.
    """

    kind: str
    environment: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def key(self) -> str:
        """``details``, ``dependencies`` or ``environment:NAME``."""
        return f"{self.kind}:{self.environment}" if self.environment else self.kind

    def changes(self, segments: Mapping[int, str]) -> list[Change]:
        """Lists the differences as text. ``segments`` are names by id."""
        return diff(_drop_ids(self.before), _drop_ids(self.after), segments)

    def used_segments(self) -> set[int]:
        strategies = chain.from_iterable(side.get("strategies", ()) for side in (self.before, self.after))
        return {segment for strategy in strategies for segment in strategy["segments"]}


def find_differing_parts(before: FlagState, after: FlagState) -> Iterator[FlagPart]:
    """Environments by name, then dependencies and details. Ignores ids of strategies."""
    old, new = by_environment(before), by_environment(after)
    for name in sorted({*old, *new}):
        yield from _make_part(ENVIRONMENT, name, old.get(name, NOTHING), new.get(name, NOTHING))
    yield from _make_part(
        DEPENDENCIES, "", *({"dependencies": side["dependencies"]} for side in (before, after))
    )
    yield from _make_part(
        DETAILS, "", *({key: side.get(key) for key in DETAIL_MEMBERS} for side in (before, after))
    )


def _make_part(
    kind: str, environment: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[FlagPart]:
    if _drop_ids(before) != _drop_ids(after):
        yield FlagPart(kind, environment, before, after)


def _drop_ids(part: Mapping[str, Any]) -> Document:
    return {**part, "strategies": [{**each, "id": ""} for each in part.get("strategies", ())]}
