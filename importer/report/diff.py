"""What an import changes of a flag, field by field, in words for people."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from importer.plan.stored import Document
from playground.engine.operators import OPERATORS

STRATEGY_WORDS = {
    "flexibleRollout": "gradual rollout",
    "default": "everyone",
    "remoteAddress": "IP addresses",
}


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
    """A new flag in a line: ``release, on, gradual rollout 10 %``."""
    parts = [document["type"], _switch(document["enabled"])]
    parts += [strategy_words(strategy, segments) for strategy in document["strategies"]]
    if document["variants"]:
        parts.append(f"variants {_variants(document['variants'])}")
    if document["archived"]:
        parts.append("archived")
    return ", ".join(parts)


def differences(before: Document, after: Document, segments: Mapping[int, str]) -> list[Change]:
    """Every difference, in the order in which a flag is read: itself, its switch, its strategies, what hangs on it."""
    changes = [
        Change(part, words(before[key]), words(after[key]))
        for key, part, words in _PARTS
        if before[key] != after[key]
    ]
    changes += _strategy_changes(before["strategies"], after["strategies"], segments)
    for key, part, one in _LISTS:
        changes += _list_changes(part, before[key], after[key], one)
    return changes


# One value in words ----------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _switch(value: bool) -> str:
    return "on" if value else "off"


def _variants(variants: list[Document]) -> str:
    return ", ".join(_variant(variant) for variant in variants) or "none"


def _variant(variant: Document) -> str:
    words = f"{variant['name']} {variant['weight'] / 10:g} %"
    if payload := variant.get("payload"):
        words += f" ({payload['type']} {_shortened(payload['value'])})"
    for override in variant.get("overrides") or ():
        words += f" (always for {override['contextName']} {_values(override['values'])})"
    return words


def _tag(tag: list[str]) -> str:
    return ":".join(tag)


def _link(link: Document) -> str:
    return f"{link['title']} ({link['url']})" if link["title"] else link["url"]


def _parent(parent: Document) -> str:
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


def strategy_words(strategy: Document, segments: Mapping[int, str]) -> str:
    """``gradual rollout 10 %, country one of DE, NO``"""
    words: list[str] = [STRATEGY_WORDS.get(strategy["name"]) or strategy["name"]]
    if (rollout := strategy["parameters"].get("rollout")) is not None:
        words[0] += f" {rollout} %"
    if strategy["title"]:
        words[0] += f" ({strategy['title']})"
    words += [constraint_words(constraint) for constraint in strategy["constraints"]]
    words += [f"segment {segments.get(segment, segment)}" for segment in strategy["segments"]]
    if strategy["disabled"]:
        words.append("disabled")
    return ", ".join(words)


def constraint_words(constraint: Document) -> str:
    """``country one of DE, NO``, ``appVersion not above 5.0.0``"""
    operator = OPERATORS.get(constraint["operator"])
    relation = operator.relation if operator else constraint["operator"]
    takes_values = operator is None or operator.takes == "values"
    value = _values(constraint["values"]) if takes_values else constraint.get("value", "")
    negation = "not " if constraint.get("inverted") else ""
    cased = ", any case" if constraint.get("caseInsensitive") else ""
    return f"{constraint['contextName']} {negation}{relation} {value}{cased}"


def _strategy_changes(
    before: list[Document], after: list[Document], segments: Mapping[int, str]
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
                yield Change("strategy", strategy_words(old, segments), None)
            if now is not None:
                yield Change("strategy", None, strategy_words(now, segments))
        else:
            yield from _within_strategy(old, now, segments)
    if not gone and not new:
        yield Change(
            "order of strategies",
            _values([strategy_words(s, segments) for s in before]),
            _values([strategy_words(s, segments) for s in after]),
        )


def _content(strategy: Document) -> Document:
    return {key: value for key, value in strategy.items() if key != "sortOrder"}


def _unmatched(strategies: list[Document], others: list[Document]) -> list[Document]:
    """Those that have no like among the others."""
    left = [_content(other) for other in others]
    unmatched = []
    for strategy in strategies:
        content = _content(strategy)
        if content in left:
            left.remove(content)
        else:
            unmatched.append(strategy)
    return unmatched


def _within_strategy(before: Document, after: Document, segments: Mapping[int, str]) -> Iterator[Change]:
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


def _constraint_changes(before: list[Document], after: list[Document]) -> Iterator[Change]:
    """Constraints on one field, one before and one after, are one change."""
    gone = [constraint for constraint in before if constraint not in after]
    new = [constraint for constraint in after if constraint not in before]
    for old in gone:
        same_field = [constraint for constraint in new if constraint["contextName"] == old["contextName"]]
        if same_field:
            new.remove(same_field[0])
        yield Change(
            f"constraint {old['contextName']}",
            _without_field(old),
            _without_field(same_field[0]) if same_field else None,
        )
    yield from (Change(f"constraint {c['contextName']}", None, _without_field(c)) for c in new)


def _without_field(constraint: Document) -> str:
    return constraint_words(constraint).removeprefix(f"{constraint['contextName']} ")
