"""Describes as text, field by field, what changes in a flag or strategy."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from playground.engine.definitions import (
    ConstraintDefinition,
    DependencyDefinition,
    StrategyDefinition,
    VariantDefinition,
)
from playground.engine.sentences import SHOWN_VALUES
from projects.strategies.sentences import describe_constraint, summarize_strategy

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """``part`` was ``before`` and becomes ``after``; None where there was or will be nothing."""

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
    parts += [f"strategy: {_strategy(strategy, segments)}" for strategy in document["strategies"]]
    if document["variants"]:
        parts.append(f"variants {_variants(document['variants'])}")
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
    changes += _strategy_changes(before["strategies"], after["strategies"], segments)
    for key, part, describe in _LISTS:
        changes += _list_changes(part, before[key], after[key], describe)
    return changes


# One value as text -----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def _owner(owner: Mapping[str, Any] | None) -> str:
    return owner["name"] if owner else "none"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _switch(value: bool) -> str:
    return "on" if value else "off"


def _variants(variants: list[VariantDefinition]) -> str:
    return ", ".join(variant_text(variant) for variant in variants) or "none"


def variant_text(variant: VariantDefinition) -> str:
    text = f"{variant['name']} {variant['weight'] / 10:g} %"
    if payload := variant.get("payload"):
        text += f" ({payload['type']} {_shorten(payload['value'])})"
    for override in variant.get("overrides") or ():
        text += f" (always for {override['contextName']} {_values(override['values'])})"
    return text


def _tag(tag: list[str]) -> str:
    return ":".join(tag)


def _link(link: Document) -> str:
    return f"{link['title']} ({link['url']})" if link["title"] else link["url"]


def _parent(parent: DependencyDefinition) -> str:
    if not parent["enabled"]:
        return f"{parent['feature']} off"
    variants = parent["variants"]
    return f"{parent['feature']} {'with ' + _values(variants) if variants else 'on'}"


def _values(values: list[str], limit: int = 10) -> str:
    listed = ", ".join(values[:limit])
    return f"{listed} and {len(values) - limit} more" if len(values) > limit else listed


def _shorten(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_PARTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("description", "description", _text),
    ("type", "type", _text),
    ("owner", "owner", _owner),
    ("archived", "archived", _yes),
    ("stale", "stale", _yes),
    ("impressionData", "impression data", _yes),
    ("enabled", "switch", _switch),
    ("variants", "variants", _variants),
)
_LISTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("tags", "tag", _tag),
    ("parents", "depends on", _parent),
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
            _values([describe(item) for item in before]),
            _values([describe(item) for item in after]),
        )


# Strategies ------------------------------------------------------------------------------------------------


def _strategy(strategy: StrategyDefinition, segments: Mapping[int, str]) -> str:
    """Describes a strategy: ``On for 10 % of users, by userId, where country is one of DE, NO (title; disabled)``."""
    extra = [text for text in (strategy["title"], strategy["disabled"] and "disabled") if text]
    sentence = str(summarize_strategy(strategy, segments=segments)).removesuffix(".")
    return f"{sentence} ({'; '.join(extra)})" if extra else sentence


def _strategy_changes(
    before: list[StrategyDefinition], after: list[StrategyDefinition], segments: Mapping[int, str]
) -> Iterator[Change]:
    if [_content(strategy) for strategy in before] == [_content(strategy) for strategy in after]:
        if before != after:
            yield Change(
                "order of strategies",
                _values([str(s["sortOrder"]) for s in before]),
                _values([str(s["sortOrder"]) for s in after]),
            )
        return
    removed, added = _find_unmatched(before, after), _find_unmatched(after, before)
    for old, now in zip_longest(removed, added):
        if old is None or now is None or old["name"] != now["name"]:
            if old is not None:
                yield Change("strategy", _strategy(old, segments), None)
            if now is not None:
                yield Change("strategy", None, _strategy(now, segments))
        else:
            yield from strategy_diff(old, now, segments)
    if not removed and not added:
        yield Change(
            "order of strategies",
            "; ".join(_strategy(s, segments) for s in before),
            "; ".join(_strategy(s, segments) for s in after),
        )


def _content(strategy: StrategyDefinition) -> dict[str, Any]:
    return {key: value for key, value in strategy.items() if key != "sortOrder"}


def _find_unmatched(
    strategies: list[StrategyDefinition], others: list[StrategyDefinition]
) -> list[StrategyDefinition]:
    """The strategies that have no equal among the others."""
    left = [_content(other) for other in others]
    unmatched = []
    for strategy in strategies:
        content = _content(strategy)
        if content in left:
            left.remove(content)
        else:
            unmatched.append(strategy)
    return unmatched


def strategy_diff(
    before: StrategyDefinition, after: StrategyDefinition, segments: Mapping[int, str]
) -> Iterator[Change]:
    """The changes within one strategy. The strategy type is the same."""
    if before["title"] != after["title"]:
        yield Change("title", _text(before["title"]), _text(after["title"]))
    if before["disabled"] != after["disabled"]:
        yield Change("strategy", _switch(not before["disabled"]), _switch(not after["disabled"]))
    old, new = before["parameters"], after["parameters"]
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield Change(key, _parameter(key, old.get(key)), _parameter(key, new.get(key)))
    yield from _constraint_changes(before["constraints"], after["constraints"])
    yield from _list_changes(
        "segment",
        before["segments"],
        after["segments"],
        lambda identifier: segments.get(identifier, str(identifier)),
    )
    if before["variants"] != after["variants"]:
        yield Change("strategy variants", _variants(before["variants"]), _variants(after["variants"]))


def _parameter(key: str, value: Any) -> str | None:
    if value is None:
        return None
    return f"{value} %" if key in ("rollout", "percentage") else _shorten(str(value))


def _constraint_changes(
    before: list[ConstraintDefinition], after: list[ConstraintDefinition]
) -> Iterator[Change]:
    """Changed constraints. One removed and one added on the same context field count as one change."""
    removed = [constraint for constraint in before if constraint not in after]
    added = [constraint for constraint in after if constraint not in before]
    for old in removed:
        same_field = [constraint for constraint in added if constraint["contextName"] == old["contextName"]]
        if same_field:
            added.remove(same_field[0])
        yield Change(
            f"condition {old['contextName']}",
            _condition(old),
            _changed_condition(same_field[0], old) if same_field else None,
        )
    yield from (
        Change(f"condition {constraint['contextName']}", None, _condition(constraint)) for constraint in added
    )


def _condition(constraint: ConstraintDefinition) -> str:
    """Describes a constraint without its context field: ``is one of DE, NO``."""
    return describe_constraint(constraint).removeprefix(f"{constraint['contextName']} ")


def _changed_condition(constraint: ConstraintDefinition, before: ConstraintDefinition) -> str:
    """Describes a changed constraint. If it has too many values to show, lists those added and removed."""
    old, new = before["values"], constraint["values"]
    if max(len(old), len(new)) <= SHOWN_VALUES:
        return _condition(constraint)
    added, removed = (
        [value for value in new if value not in old],
        [value for value in old if value not in new],
    )
    parts = [
        f"{verb} {_values(values)}" for verb, values in (("added", added), ("removed", removed)) if values
    ]
    return f"{_condition(constraint)} ({'; '.join(parts)})" if parts else _condition(constraint)
