"""Computes a flag's document after an import from its stored document and its entry in the import body."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

import orjson

from flagadmin.core.document import Document
from flagadmin.core.errors import Problem
from flagadmin.core.unreadable_values import UnreadableValue
from importer.plan.entries import Entry
from importer.plan.references import References
from importer.plan.target import Issue, IssueKind, Target
from playground.engine.definitions import StrategyDefinition
from projects.flags.dependencies.actions import make_dependency
from projects.flags.links.rules import link_problems, normalize_url
from projects.states import MAX_SORT_ORDER, has_enabled, next_sort_order, with_strategies
from projects.strategies.rules import make_strategy, make_variants, strategy_problems, variants_problems
from projects.tag_types.rules import tag_problems
from projects.text_values import format_scalar

NEW_FLAG: Document = {"enabled": False, "variants": [], "links": [], "parents": []}
UNKNOWN_SEGMENT = 0
"""Represents a missing segment. Another issue reports it."""


def build_desired_document(
    entry: Entry, stored: Document | None, references: References, target: Target, issues: list[Issue]
) -> Document:
    """The document that the flag would have after the import. Appends problems to ``issues``.

    A flag listed in ``features`` is overwritten: omitted members are reset to their defaults, except whether
    it is enabled, its variants, links and parents, which stay. Other flags only get additions.
    """
    if entry.parts is not None and stored is not None:
        return _copy_parts(entry, stored, references, target, issues)
    document = (
        _build_metadata(entry, stored, target, issues)
        if entry.feature is not None
        else dict(stored or NEW_FLAG)
    )
    document["strategies"] = list(_build_strategies(entry, stored, references, target, issues))
    document["tags"] = _build_tags(entry, stored, references, issues)
    if entry.enabled is not None:
        document["enabled"] = entry.enabled[1]
        _ensure_strategy(entry, document, target, issues)
    _set_variants(entry, document, references, target, issues)
    if entry.links is not None:
        document["links"] = _build_links(entry, target, issues)
    if entry.parents is not None:
        document["parents"] = [make_dependency(parent) for _, parent in entry.parents]
    kept = (stored or {}).get("payloadSchema")
    document["payloadSchema"] = entry.payload_schema[1] if entry.payload_schema else kept
    if document["payloadSchema"] is None:
        del document["payloadSchema"]
    _sort_strategies(document["strategies"])
    document["enabled"] = document["enabled"] and not document["archived"]
    return document


def _copy_parts(
    entry: Entry, stored: Document, references: References, target: Target, issues: list[Issue]
) -> Document:
    """The stored document with the entry's ``parts``. Equal strategies in the same order stay unchanged."""
    document = {**stored, "strategies": list(stored["strategies"])}
    if "strategies" in entry.parts:  # type: ignore[operator]
        problems: list[Issue] = []
        strategies = list(_build_strategies(entry, stored, references, target, problems))
        if _drop_order(strategies) != _drop_order(stored["strategies"]):
            issues += problems
            _keep_orders(strategies, stored["strategies"])
            document = with_strategies(document, strategies)
    _set_variants(entry, document, references, target, issues)
    if entry.enabled is not None:
        document["enabled"] = entry.enabled[1]
        if not stored["enabled"] or document["strategies"] != stored["strategies"]:
            _ensure_strategy(entry, document, target, issues)
    return document


def _drop_order(strategies: Iterable[StrategyDefinition]) -> list[Any]:
    return [{**strategy, "sortOrder": 0} for strategy in strategies]


def _keep_orders(strategies: Sequence[Any], stored: Sequence[Any]) -> None:
    """Keeps the sort orders of strategies that stay in order, so that they do not change."""
    old, new = ([orjson.dumps(each) for each in _drop_order(side)] for side in (stored, strategies))
    matches = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    orders_by_index = {b + n: stored[a + n]["sortOrder"] for a, b, size in matches for n in range(size)}
    orders: list[int] = []
    for index in range(len(strategies)):
        orders.append(orders_by_index.get(index, orders[-1] + 1 if orders else 0))
    if orders != sorted(set(orders)):  # no room between those that stay
        orders = list(range(len(strategies)))
    for strategy, order in zip(strategies, orders, strict=True):
        strategy["sortOrder"] = order


def _set_variants(
    entry: Entry, document: Document, references: References, target: Target, issues: list[Issue]
) -> None:
    if entry.variants is None:
        return
    path, variants = entry.variants
    issues += _convert_problems(entry, _note_unreadable(entry, variants_problems(variants, path), references))
    # Copied variants keep their order and weights.
    stays = entry.parts or target.keeps_results
    document["variants"] = make_variants(variants, variants if stays else document["variants"])


def _convert_problems(entry: Entry, problems: Iterator[Any]) -> Iterator[Issue]:
    for problem in problems:
        yield Issue(IssueKind.VALUE, problem.path, problem.message, entry.name)


def _build_metadata(entry: Entry, stored: Document | None, target: Target, issues: list[Issue]) -> Document:
    feature = entry.feature
    kind = feature.get("type", "release")
    if not 1 <= len(kind) <= 100:
        issues.append(
            Issue(IssueKind.VALUE, f"{entry.path}.type", "must have 1 to 100 characters", entry.name)
        )
    before = stored or NEW_FLAG | {"links": target.make_first_links(entry.name)}
    return {
        "type": kind,
        "description": feature.get("description") or None,
        "stale": feature.get("stale", False),
        "impressionData": feature.get("impressionData", False),
        "archived": feature.get("archived", False),
        "enabled": before["enabled"],
        "variants": before["variants"],
        "strategies": [],
        "tags": [],
        "links": before["links"],
        "parents": before["parents"],
    }


# Strategies ------------------------------------------------------------------------------------------------


def _build_strategies(
    entry: Entry, stored: Document | None, references: References, target: Target, issues: list[Issue]
) -> Iterator[StrategyDefinition]:
    strategies = (
        [strategy.copy() for strategy in stored["strategies"]] if stored and entry.feature is None else []
    )
    yield from strategies
    first = next_sort_order(strategies)
    defaults = target.make_defaults(entry.name)
    count = len(strategies) + len(entry.strategies)
    if count > target.limits.strategies and entry.strategies:
        message = f"must have at most {target.limits.strategies} strategies in an environment, not {count}"
        issues.append(Issue(IssueKind.VALUE, entry.strategies[0][0], message, entry.name))
    for position, (path, strategy) in enumerate(entry.strategies, start=first):
        copied_variants = strategy.get("variants", ()) if entry.parts else ()
        document = make_strategy(strategy, defaults, stored_variants=copied_variants)
        document["segments"] = _resolve_segments(entry, path, strategy, references, issues)
        issues += _find_strategy_issues(entry, path, strategy, document, references, target)
        if document["sortOrder"] is None:
            document["sortOrder"] = position
        yield document


def _resolve_segments(
    entry: Entry, path: str, strategy: Any, references: References, issues: list[Issue]
) -> list[int]:
    segments = []
    for index, identifier in enumerate(strategy.get("segments", ())):
        if identifier not in references.listed_segments:
            message = f"segment {format_scalar(identifier)} not found in data.segments"
            issues.append(Issue(IssueKind.VALUE, f"{path}.segments[{index}]", message, entry.name))
        segments.append(references.segment_ids.get(identifier, UNKNOWN_SEGMENT))
    return segments


def _find_strategy_issues(
    entry: Entry,
    path: str,
    strategy: Any,
    document: StrategyDefinition,
    references: References,
    target: Target,
) -> Iterator[Issue]:
    if UNKNOWN_SEGMENT in document["segments"]:
        document = {**document, "segments": []}
    problems = strategy_problems(
        document,
        path,
        known_names=references.known,
        limits=target.limits,
        given_variants=strategy.get("variants", ()),
    )
    for problem in _note_unreadable(entry, problems, references):
        if problem.path == f"{path}.name":
            strategy_type = document["name"]
            yield Issue(IssueKind.STRATEGY_TYPE, problem.path, problem.message, entry.name, strategy_type)
        else:
            yield Issue(IssueKind.VALUE, problem.path, problem.message, entry.name)


def _note_unreadable(entry: Entry, problems: Iterable[Problem], references: References) -> Iterator[Problem]:
    """Adds a note for each value that SDKs cannot read. It is imported unchanged."""
    for problem in problems:
        if isinstance(problem, UnreadableValue):
            references.notes.append(f"{entry.name}: {problem.message} ({problem.path}).")
        else:
            yield problem


def _ensure_strategy(entry: Entry, document: Document, target: Target, issues: list[Issue]) -> None:
    """Adds the default strategy to an enabled flag without an enabled one.

    An archived flag cannot be enabled.
    """
    path, enabled = entry.enabled  # type: ignore[misc]
    if not enabled:
        return
    if document["archived"]:
        issues.append(
            Issue(
                IssueKind.VALUE,
                path,
                f"{entry.name} cannot be enabled because the file archives it",
                entry.name,
            )
        )
    if not has_enabled(document["strategies"]):
        last = next_sort_order(document["strategies"])
        if len(document["strategies"]) >= (limit := target.limits.strategies):
            message = (
                f"needs the default strategy to be enabled, but has {limit} strategies already, the limit"
            )
            issues.append(Issue(IssueKind.VALUE, path, message, entry.name))
        document["strategies"].append(target.find_default_strategy(entry.name) | {"sortOrder": last})


def _sort_strategies(strategies: list[Any]) -> None:
    """Sorts strategies by ``sortOrder``. Values that do not fit into the column are replaced by positions."""
    strategies.sort(key=lambda strategy: strategy["sortOrder"])
    orders = [strategy["sortOrder"] for strategy in strategies]
    if any(order != int(order) or abs(order) > MAX_SORT_ORDER for order in orders):
        orders = list(range(len(orders)))
    for strategy, order in zip(strategies, orders, strict=True):
        strategy["sortOrder"] = int(order)


# Tags and links --------------------------------------------------------------------------------------------


def _build_tags(
    entry: Entry, stored: Document | None, references: References, issues: list[Issue]
) -> list[list[str]]:
    tags = stored["tags"] if stored and entry.feature is None else []
    if not entry.tags:
        return list(tags)
    for path, tag_type, value, from_list in entry.tags:
        names = ("tagType", "tagValue") if from_list else ("type", "value")
        issues += _convert_problems(
            entry, tag_problems(tag_type, value, path, known_names=references.known, names=names)
        )
    return [list(tag) for tag in sorted({*map(tuple, tags), *((tag[1], tag[2]) for tag in entry.tags)})]


def _build_links(entry: Entry, target: Target, issues: list[Issue]) -> list[Document]:
    path, links = entry.links  # type: ignore[misc]
    issues += _convert_problems(entry, link_problems(links, path, limits=target.limits))
    return [
        {"url": normalize_url(link["url"]) or link["url"], "title": link.get("title") or None}
        for link in links
    ]
