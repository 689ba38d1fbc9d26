"""Describes the fields that an audit event changed, with their values before and after as text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import orjson
from django.utils.text import capfirst

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.document import Document
from flagadmin.core.errors import pluralize
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from projects.history import diff
from projects.history.diff import FlagPart, find_differing_parts
from projects.models import Segment, Strategy
from projects.projects.required_comments import CONDITIONS, describe_rule
from projects.projects.settings import SETTINGS
from projects.segments.lists import CHANGE as LIST_CHANGE
from projects.segments.lists import describe_difference, drop_list, pluralize_values, read_list_size
from projects.strategies.sentences import summarize_strategy

MAX_FIELDS, MAX_LETTERS = 12, 250


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its values before and after as text; None where there is no value."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Names:
    """Names for the ids in events: the positions of existing strategies, and segments."""

    strategies: Mapping[str, int]
    segments: Mapping[int, str]


NO_NAMES = Names({}, {})


_NOT_SHOWN = {"id", "archivedAt", "createdAt", "strategyIds", "sortOrder"}
_LABELS = {"stale": "Stale", "impressionData": "Impression data"} | {
    setting.member: setting.label for setting in SETTINGS
}


def changes_of(event: AuditEvent, names: Names = NO_NAMES) -> list[FieldChange]:
    """The changed fields, shortened for a page."""
    try:
        changes = list(_CHANGES.get(event.type, _compare_documents)(event, names))
    except (KeyError, TypeError, AttributeError):  # recorded by an earlier version with other members
        changes = list(_compare_documents(event, names))
    return _shorten_changes(changes)


def _shorten_changes(changes: Iterable[FieldChange]) -> list[FieldChange]:
    shortened = [
        FieldChange(change.field, _shorten(change.before), _shorten(change.after)) for change in changes
    ]
    if (more := len(shortened) - MAX_FIELDS) > 1:
        shortened[MAX_FIELDS:] = [FieldChange(f"{more:,} more", None, "")]
    return shortened


def _compare_documents(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    """Yields the changes field by field. Creation and deletion are in the sentence."""
    yield from _compare_fields(event.before, event.after)


def _compare_fields(before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            if before.get(key) != after.get(key) and key not in _NOT_SHOWN:
                yield FieldChange(_label(key), _format_value(before.get(key)), _format_value(after.get(key)))


def _describe_segment(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    """A long list by its size and what was added and removed."""
    before, after = document_of(event.before), document_of(event.after)
    if LIST_CHANGE in after:
        sizes = [pluralize_values(read_list_size(side)) for side in (before, after)]
        yield FieldChange("List", sizes[0], f"{sizes[1]}: {describe_difference(after[LIST_CHANGE])}")
        before, after = drop_list(before), drop_list(after)
    yield from _compare_fields(before, after)


def _describe_switch(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    on = event.type == E.FEATURE_ENVIRONMENT_ENABLED
    yield FieldChange(event.environment or "", "Off" if on else "On", "On" if on else "Off")


def _describe_variants(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    before, after = (
        {variant.get("name"): variant for variant in document_of(side).get("variants") or []}
        for side in (event.before, event.after)
    )
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if old != new:
            yield FieldChange(str(name), _format_weight(old, new), _format_weight(new, old))


def _format_weight(variant: VariantDefinition | None, other: VariantDefinition | None) -> str | None:
    """The weight; the whole variant if the weight is the same."""
    if variant is None:
        return None
    if other is not None and variant.get("weight") == other.get("weight"):
        return diff.describe_variant(variant)
    return f"{variant.get('weight', 0) / 10:g} %"


# Members for comparing strategies. An event of another origin may have only the changed ones.
_WHOLE = ("title", "disabled", "parameters", "constraints", "variants", "segments")


def _describe_strategy(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    before, after = event.before, event.after
    if isinstance(before, dict) and isinstance(after, dict) and before.get("name") == after.get("name"):
        if not all(key in side for side in (before, after) for key in _WHOLE):
            yield from _compare_documents(event, names)
        else:
            sides: tuple[Any, Any] = before, after
            yield from map(_make_field_change, diff.compare_strategies(*sides, names.segments))
    else:
        yield FieldChange("Strategy", _summarize(before, names), _summarize(after, names))


def list_strategy_changes(before: StrategyDefinition, after: StrategyDefinition) -> list[FieldChange]:
    """The differences of two strategies, shortened for a page."""
    ids = {*before["segments"], *after["segments"]}
    segments = Segment.objects.names(ids)
    if before["name"] == after["name"]:
        changes = [_make_field_change(change) for change in diff.compare_strategies(before, after, segments)]
    else:
        names = Names({}, segments)
        changes = [FieldChange("Strategy", _summarize(before, names), _summarize(after, names))]
    return _shorten_changes([change for change in changes if (change.before or "") != (change.after or "")])


def list_part_changes(part: FlagPart, segments: Mapping[int, str]) -> list[FieldChange]:
    """The differences of a part of two versions of a flag, shortened for a page."""
    return _shorten_changes(map(_make_field_change, part.changes(segments)))


def _summarize(strategy: Any, names: Names) -> str | None:
    return str(summarize_strategy(strategy, segments=names.segments)) if isinstance(strategy, dict) else None


def _describe_import(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    before, after = event.before, event.after
    if isinstance(before, dict) and isinstance(after, dict) and "strategies" in before:
        yield from map(_make_field_change, diff.diff(before, after, names.segments))


def _describe_revert(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    for part in find_differing_parts(document_of(event.before), document_of(event.after)):
        for change in part.changes(names.segments):
            field_change = _make_field_change(change)
            label = (
                f"{part.environment}: {field_change.field.lower()}"
                if part.environment
                else field_change.field
            )
            yield replace(field_change, field=label)


def _make_field_change(change: diff.Change) -> FieldChange:
    return FieldChange(_label(change.part), change.before, change.after)


def _describe_nothing(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    return iter(())


_CHANGES: dict[str, Callable[[AuditEvent, Names], Iterator[FieldChange]]] = {
    E.SEGMENT_UPDATED: _describe_segment,
    E.FEATURE_ENVIRONMENT_ENABLED: _describe_switch,
    E.FEATURE_ENVIRONMENT_DISABLED: _describe_switch,
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED: _describe_variants,
    E.FEATURE_STRATEGY_ADD: _describe_strategy,
    E.FEATURE_STRATEGY_UPDATE: _describe_strategy,
    E.FEATURE_STRATEGY_REMOVE: _describe_strategy,
    E.FEATURE_IMPORTED: _describe_import,
    E.FEATURE_PROMOTED: _describe_import,
    E.FEATURE_ARCHIVED: _describe_import,
    E.FEATURE_REVIVED: _describe_import,
    E.FEATURE_REVERTED: _describe_revert,
    E.FEATURE_STRATEGY_ORDER_CHANGED: _describe_nothing,
    E.FEATURE_STALE_ON: _describe_nothing,
    E.FEATURE_STALE_OFF: _describe_nothing,
    E.FEATURE_PROJECT_CHANGE: _describe_nothing,
    E.IMPORT_UNDONE: _describe_nothing,
    E.PROMOTION_UNDONE: _describe_import,
}


def _label(key: str) -> str:
    words = _LABELS.get(key) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()
    return capfirst(words)


def _format_value(value: Any) -> str | None:
    if value is None or value == "" or value == []:
        return None
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, dict) and value.keys() == {"kind", "id", "name"}:  # an owner
        return str(value["name"])
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return "; ".join(map(_list_members, value))
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return _list_members(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _list_members(document: Document) -> str:
    """`condition changesUsers, percent 5`."""
    if "requiredApprovals" in document and document.get("condition") in CONDITIONS:
        return f"{describe_rule(document)}: {pluralize(document['requiredApprovals'], 'approval')}"
    members = {_label(key).lower(): _format_value(value) for key, value in document.items()}
    return ", ".join(f"{label} {value}" for label, value in members.items() if value is not None)


def _shorten(text: str | None) -> str | None:
    if text is None or len(text) <= MAX_LETTERS:
        return text
    return f"{text[:MAX_LETTERS]}… ({len(text) - MAX_LETTERS:,} more characters)"


def document_of(value: Any) -> Any:
    return value if isinstance(value, dict) else {}


def find_names_in(events: Iterable[AuditEvent]) -> Names:
    """The positions of the strategies and the names of the segments in these events. Two queries."""
    strategies: set[tuple[str, str]] = set()
    segments: set[int] = set()
    for event in events:
        for side in (event.before, event.after):
            if isinstance(side, dict):
                if event.type.startswith("feature-strategy-") and event.feature and event.environment:
                    strategies.add((event.feature, event.environment))
                places = (side, *(side.get("environments") or ()))
                strategy_lists = (
                    place.get("strategies") or () for place in places if isinstance(place, dict)
                )
                for document in (side, *chain.from_iterable(strategy_lists)):
                    if isinstance(document, dict) and isinstance(document.get("segments"), list):
                        segments.update(
                            segment for segment in document["segments"] if isinstance(segment, int)
                        )
    return Names(_number_strategies(strategies), Segment.objects.names(segments))


def _number_strategies(places: set[tuple[str, str]]) -> dict[str, int]:
    """The position of each strategy among those of its flag in its environment, from 1."""
    if not places:
        return {}
    rows = Strategy.objects.filter(
        flag__name__in={flag for flag, _ in places}, environment__in={name for _, name in places}
    )
    numbers_by_place: dict[Any, int] = {}
    numbers = {}
    for pk, *place in rows.order_by("sort_order", "pk").values_list("pk", "flag_id", "environment_id"):
        numbers_by_place[tuple(place)] = numbers[str(pk)] = numbers_by_place.get(tuple(place), 0) + 1
    return numbers
