"""A flag's document as it will be after the import: what is stored now, and what the body says of it."""

from collections.abc import Iterator
from typing import Any

from importer.plan.entries import Entry
from importer.plan.issues import Finding, Kind
from importer.plan.references import Words
from importer.plan.stored import Document
from importer.plan.target import Target
from projects.flags.dependency_rules import dependency_document
from projects.flags.link_rules import link_problems, normalised_url
from projects.strategies.constraint_rules import UnreadableValue
from projects.strategies.rules import strategy_document, strategy_problems
from projects.strategies.variant_rules import variants_document, variants_problems
from projects.tag_types.tag_rules import tag_problems

NEW_FLAG: Document = {"enabled": False, "variants": [], "links": [], "parents": []}
MOST_SORT_ORDER = 2**31 - 1
UNKNOWN_SEGMENT = 0
"""Stands for a segment that another finding has told of already."""


def wanted_document(
    entry: Entry, stored: Document | None, words: Words, target: Target, findings: list[Finding]
) -> Document:
    """The document, and in ``findings`` what is wrong with it.

    A flag that ``features`` lists is overwritten: what is not said falls back to the defaults, but for its switch,
    variants, links and parents, which stay. To one that it does not list, things are added.
    """
    document = _metadata(entry, stored, findings) if entry.feature is not None else dict(stored or NEW_FLAG)
    document["strategies"] = list(_strategies(entry, stored, words, target, findings))
    document["tags"] = _tags(entry, stored, words, findings)
    if entry.enabled is not None:
        document["enabled"] = entry.enabled[1]
        _ensure_strategy(entry, document, target, findings)
    if entry.variants is not None:
        path, given = entry.variants
        findings += _about(entry, variants_problems(given, path))
        document["variants"] = variants_document(given, document["variants"])
    if entry.links is not None:
        document["links"] = _links(entry, target, findings)
    if entry.parents is not None:
        document["parents"] = [dependency_document(parent) for _, parent in entry.parents]
    _place_strategies(document["strategies"])
    document["enabled"] = document["enabled"] and not document["archived"]
    return document


def _about(entry: Entry, problems: Iterator[Any]) -> Iterator[Finding]:
    for problem in problems:
        yield Finding(Kind.VALUE, problem.path, problem.message, entry.name)


def _metadata(entry: Entry, stored: Document | None, findings: list[Finding]) -> Document:
    feature = entry.feature
    kind = feature.get("type", "release")
    if not 1 <= len(kind) <= 100:
        findings.append(
            Finding(Kind.VALUE, f"{entry.path}.type", "a type has 1 to 100 characters", entry.name)
        )
    kept = stored or NEW_FLAG
    return {
        "type": kind,
        "description": feature.get("description") or None,
        "stale": feature.get("stale", False),
        "impressionData": feature.get("impressionData", False),
        "archived": feature.get("archived", False),
        "enabled": kept["enabled"],
        "variants": kept["variants"],
        "strategies": [],
        "tags": [],
        "links": kept["links"],
        "parents": kept["parents"],
    }


# Strategies ------------------------------------------------------------------------------------------------


def _strategies(
    entry: Entry, stored: Document | None, words: Words, target: Target, findings: list[Finding]
) -> Iterator[Document]:
    kept = [dict(strategy) for strategy in stored["strategies"]] if stored and entry.feature is None else []
    yield from kept
    first = 1 + max((strategy["sortOrder"] for strategy in kept), default=-1)
    defaults = target.defaults(entry.name)
    count = len(kept) + len(entry.strategies)
    if count > target.limits.strategies and entry.strategies:
        message = (
            f"at most {target.limits.strategies} strategies are allowed in an environment; there are {count}"
        )
        findings.append(Finding(Kind.VALUE, entry.strategies[0][0], message, entry.name))
    for position, (path, given) in enumerate(entry.strategies, start=first):
        document = strategy_document(given, defaults)
        document["segments"] = _segments(entry, path, given, words, findings)
        findings += _strategy_findings(entry, path, given, document, words, target)
        if document["sortOrder"] is None:
            document["sortOrder"] = position
        yield document


def _segments(entry: Entry, path: str, given: Any, words: Words, findings: list[Finding]) -> list[int]:
    segments = []
    for index, identifier in enumerate(given.get("segments", ())):
        if identifier not in words.listed_segments:
            message = f"segment {identifier:g} is not listed in data.segments"
            findings.append(Finding(Kind.VALUE, f"{path}.segments[{index}]", message, entry.name))
        segments.append(words.segment_ids.get(identifier, UNKNOWN_SEGMENT))
    return segments


def _strategy_findings(
    entry: Entry, path: str, given: Any, document: Document, words: Words, target: Target
) -> Iterator[Finding]:
    if document["name"] not in words.vocabulary.strategy_types:
        yield Finding(
            Kind.STRATEGY_TYPE,
            f"{path}.name",
            f"there is no strategy type {document['name']}",
            entry.name,
            document["name"],
        )
    if UNKNOWN_SEGMENT in document["segments"]:
        document = {**document, "segments": []}
    for problem in strategy_problems(
        document,
        path,
        vocabulary=words.vocabulary,
        limits=target.limits,
        given_variants=given.get("variants", ()),
    ):
        if isinstance(problem, UnreadableValue):
            words.notes.append(f"{entry.name}: {problem.message} ({problem.path}).")
        elif problem.path != f"{path}.name":
            yield Finding(Kind.VALUE, problem.path, problem.message, entry.name)


def _ensure_strategy(entry: Entry, document: Document, target: Target, findings: list[Finding]) -> None:
    """A flag that is switched on needs a strategy that is on; an archived one cannot be switched on."""
    path, enabled = entry.enabled  # type: ignore[misc]
    if not enabled:
        return
    if document["archived"]:
        findings.append(
            Finding(Kind.VALUE, path, f"{entry.name} is archived by this file and cannot be on", entry.name)
        )
    if all(strategy["disabled"] for strategy in document["strategies"]):
        last = max((strategy["sortOrder"] for strategy in document["strategies"]), default=-1)
        if len(document["strategies"]) >= (limit := target.limits.strategies):
            message = f"with the default strategy, which it needs to be on, it would have more than {limit}"
            findings.append(Finding(Kind.VALUE, path, message, entry.name))
        document["strategies"].append(target.default_strategy_of(entry.name) | {"sortOrder": last + 1})


def _place_strategies(strategies: list[Document]) -> None:
    """In their order. Orders that the database cannot hold become places."""
    strategies.sort(key=lambda strategy: strategy["sortOrder"])
    orders = [strategy["sortOrder"] for strategy in strategies]
    if any(order != int(order) or abs(order) > MOST_SORT_ORDER for order in orders):
        orders = list(range(len(orders)))
    for strategy, order in zip(strategies, orders, strict=True):
        strategy["sortOrder"] = int(order)


# Tags and links --------------------------------------------------------------------------------------------


def _tags(entry: Entry, stored: Document | None, words: Words, findings: list[Finding]) -> list[list[str]]:
    kept = stored["tags"] if stored and entry.feature is None else []
    if not entry.tags:
        return list(kept)
    for path, tag_type, value, newer in entry.tags:
        names = ("tagType", "tagValue") if newer else ("type", "value")
        findings += _about(
            entry, tag_problems(tag_type, value, path, vocabulary=words.vocabulary, names=names)
        )
    return [list(tag) for tag in sorted({*map(tuple, kept), *((tag[1], tag[2]) for tag in entry.tags)})]


def _links(entry: Entry, target: Target, findings: list[Finding]) -> list[Document]:
    path, given = entry.links  # type: ignore[misc]
    findings += _about(entry, link_problems(given, path, limits=target.limits))
    return [
        {"url": normalised_url(link["url"]) or link["url"], "title": link.get("title") or None}
        for link in given
    ]
