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
from projects.strategies.sentences import constraint_sentence, strategy_summary

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
    """A one-line description of a new flag: ``release, on, strategy: On for 10 % by userId``."""
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
        Change(part, text(before[key]), text(after[key]))
        for key, part, text in _PARTS
        if before[key] != after[key]
    ]
    changes += _strategy_changes(before["strategies"], after["strategies"], segments)
    for key, part, one in _LISTS:
        changes += _list_changes(part, before[key], after[key], one)
    return changes


# One value as text -----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _switch(value: bool) -> str:
    return "on" if value else "off"


def _variants(variants: list[VariantDefinition]) -> str:
    return ", ".join(variant_text(variant) for variant in variants) or "none"


def variant_text(variant: VariantDefinition) -> str:
    text = f"{variant['name']} {variant['weight'] / 10:g} %"
    if payload := variant.get("payload"):
        text += f" ({payload['type']} {_shortened(payload['value'])})"
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


def _values(values: list[str], most: int = 10) -> str:
    listed = ", ".join(values[:most])
    return f"{listed} and {len(values) - most} more" if len(values) > most else listed


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


_PARTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("description", "description", _text),
    ("type", "type", _text),
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
    part: str, before: list[Any], after: list[Any], one: Callable[[Any], str]
) -> Iterator[Change]:
    gone = [item for item in before if item not in after]
    new = [item for item in after if item not in before]
    yield from (Change(part, one(item), None) for item in gone)
    yield from (Change(part, None, one(item)) for item in new)
    if before != after and not gone and not new:
        yield Change(f"order of {part}s", _values([one(i) for i in before]), _values([one(i) for i in after]))


# Strategies ------------------------------------------------------------------------------------------------


def _strategy(strategy: StrategyDefinition, segments: Mapping[int, str]) -> str:
    """Describes a strategy: ``On for 10 % by userId, where country is one of DE, NO (title; disabled)``."""
    extra = [text for text in (strategy["title"], strategy["disabled"] and "disabled") if text]
    sentence = str(strategy_summary(strategy, segments=segments)).removesuffix(".")
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
    gone, new = _unmatched(before, after), _unmatched(after, before)
    for old, now in zip_longest(gone, new):
        if old is None or now is None or old["name"] != now["name"]:
            if old is not None:
                yield Change("strategy", _strategy(old, segments), None)
            if now is not None:
                yield Change("strategy", None, _strategy(now, segments))
        else:
            yield from strategy_diff(old, now, segments)
    if not gone and not new:
        yield Change(
            "order of strategies",
            "; ".join(_strategy(s, segments) for s in before),
            "; ".join(_strategy(s, segments) for s in after),
        )


def _content(strategy: StrategyDefinition) -> dict[str, Any]:
    return {key: value for key, value in strategy.items() if key != "sortOrder"}


def _unmatched(
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
    return f"{value} %" if key in ("rollout", "percentage") else _shortened(str(value))


def _constraint_changes(
    before: list[ConstraintDefinition], after: list[ConstraintDefinition]
) -> Iterator[Change]:
    """Changed constraints. One removed and one added on the same context field count as one change."""
    gone = [constraint for constraint in before if constraint not in after]
    new = [constraint for constraint in after if constraint not in before]
    for old in gone:
        same_field = [constraint for constraint in new if constraint["contextName"] == old["contextName"]]
        if same_field:
            new.remove(same_field[0])
        yield Change(
            f"constraint {old['contextName']}",
            _condition(old),
            _changed_condition(same_field[0], old) if same_field else None,
        )
    yield from (Change(f"constraint {c['contextName']}", None, _condition(c)) for c in new)


def _condition(constraint: ConstraintDefinition) -> str:
    """Describes a constraint without its context field: ``is one of DE, NO``."""
    return constraint_sentence(constraint).removeprefix(f"{constraint['contextName']} ")


def _changed_condition(constraint: ConstraintDefinition, before: ConstraintDefinition) -> str:
    """Describes a changed constraint. If it has too many values to show, lists those added and removed."""
    old, new = before["values"], constraint["values"]
    if max(len(old), len(new)) <= SHOWN_VALUES:
        return _condition(constraint)
    added, removed = [v for v in new if v not in old], [v for v in old if v not in new]
    parts = [
        f"{what} {_values(values)}" for what, values in (("added", added), ("removed", removed)) if values
    ]
    return f"{_condition(constraint)} ({'; '.join(parts)})" if parts else _condition(constraint)
