"""Describes audit events for people: a sentence in parts, with links, and the fields that changed.

``flagadmin.audit.sentences`` has one for every event type, as the API returns it; here are names and values.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Formatter
from typing import Any

import orjson

from flagadmin.audit.events import EventType as E
from flagadmin.audit.models import AuditEvent
from flagadmin.audit.sentences import template_of
from projects.console import flag_url, project_url
from projects.history import diff
from projects.history.flag_parts import FlagPart, differing_parts
from projects.models import Segment
from projects.sentences import strategy_summary

MOST_FIELDS, MOST_LETTERS = 12, 250
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a sentence. ``url`` makes it a link; ``mark`` is "before", "after" or ""."""

    text: str
    url: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its values before and after as text; None where there was or is nothing."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Names:
    """What events refer to by id: the places of strategies that still exist, and segments."""

    strategies: Mapping[str, int]
    segments: Mapping[int, str]


NO_NAMES = Names({}, {})


def describe(event: AuditEvent, names: Names = NO_NAMES) -> list[Part]:
    """The event's sentence without its actor: "turned", a link to the flag, "on in production"."""
    return list(_parts(_template(event), event, _values(event, names)))


# Sentences --------------------------------------------------------------------------------------------------

_TEMPLATES: dict[str, str] = {
    E.FEATURE_CREATED: "created {feature}",
    E.FEATURE_ARCHIVED: "archived {feature}",
    E.FEATURE_REVIVED: "revived {feature}",
    E.FEATURE_DELETED: "deleted {feature}",
    E.FEATURE_STALE_ON: "marked {feature} as stale",
    E.FEATURE_STALE_OFF: "marked {feature} as active again",
    E.FEATURE_METADATA_UPDATED: "changed the {fields} of {feature}",
    E.FEATURE_PROJECT_CHANGE: "moved {feature} from {old_project} to {project}",
    E.FEATURE_ENVIRONMENT_ENABLED: "turned {feature} on in {environment}",
    E.FEATURE_ENVIRONMENT_DISABLED: "turned {feature} off in {environment}",
    E.FEATURE_STRATEGY_ADD: "added {strategy} to {feature} in {environment}",
    E.FEATURE_STRATEGY_UPDATE: "changed {strategy} of {feature} in {environment}",
    E.FEATURE_STRATEGY_REMOVE: "removed {strategy} from {feature} in {environment}",
    E.FEATURE_TAGGED: "tagged {feature} with {tag}",
    E.FEATURE_UNTAGGED: "removed the tag {tag} from {feature}",
    E.FEATURE_DEPENDENCY_ADDED: "made {feature} depend on {parent}",
    E.FEATURE_DEPENDENCY_REMOVED: "made {feature} independent of {parent}",
    E.FEATURE_LINK_ADDED: "added the link {link} to {feature}",
    E.FEATURE_LINK_UPDATED: "changed the link {link} of {feature}",
    E.FEATURE_LINK_REMOVED: "removed the link {link} from {feature}",
    E.FEATURE_IMPORTED: "changed {feature} in {environment} by an import",
    E.FEATURE_REVERTED: "reverted {feature} to its state of {subject}",
    E.FEATURES_IMPORTED: "imported {number} into {project} / {environment}",
    E.FEATURES_EXPORTED: "exported {number} from {environment}",
    E.PROJECT_ENVIRONMENT_REMOVED: "removed {environment} from project {project}",
    E.PROJECT_ACCESS_ADDED: "gave {subject} the {roles} in project {project}",
    E.PROJECT_ACCESS_UPDATED: "changed the roles of {subject} in project {project}",
    E.PROJECT_ACCESS_REMOVED: "removed {subject} from project {project}",
}
_MOVED = "moved {strategy} of {feature} in {environment} from {share_before} to {share_after}"
_SHARES = ("rollout", "percentage")


def _template(event: AuditEvent) -> str:
    if event.type == E.FEATURE_STRATEGY_UPDATE and _moved(event):
        return _MOVED
    return _TEMPLATES.get(event.type) or template_of(event.type)


def _moved(event: AuditEvent) -> tuple[str, str] | None:
    """The percentages before and after, if nothing else changed."""
    before, after = event.before, event.after
    if not (isinstance(before, dict) and isinstance(after, dict)) or before.get("name") != after.get("name"):
        return None
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    if changed != ["parameters"]:
        return None
    old, new = _document(before.get("parameters")), _document(after.get("parameters"))
    keys = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    if len(keys) != 1 or keys[0] not in _SHARES or keys[0] not in old or keys[0] not in new:
        return None
    return f"{old[keys[0]]} %", f"{new[keys[0]]} %"


def _values(event: AuditEvent, names: Names) -> dict[str, Part]:
    """What the placeholders of the sentence stand for."""
    before, after = _document(event.before), _document(event.after)
    told = after or before
    old, new = _moved(event) or ("", "")
    values = {
        "project": _project(event.project) if event.project else Part("no project"),
        "environment": Part(event.environment or "every environment"),
        "feature": _flag(event.project, event.feature),
        "subject": Part(event.subject or ""),
        "old_project": _project(before.get("project")),
        "strategy": Part(_strategy_name(told, names)),
        "share_before": Part(old, mark="before"),
        "share_after": Part(new, mark="after"),
        "parent": _flag(None, told.get("feature")),
        "tag": Part(f"{told.get('type')}:{told.get('value')}"),
        "link": Part(str(told.get("title") or told.get("url") or "")),
        "fields": Part(_and([change.field.lower() for change in changes_of(event)]) or "details"),
        "number": Part(_number_of_flags(after)),
        "roles": Part(_roles(told)),
    }
    if event.type == E.FEATURE_DELETED:
        values["feature"] = Part(event.feature or "")
    if event.type == E.PROJECT_DELETED:
        values["project"] = Part(event.project or "")
    return values


def _parts(template: str, event: AuditEvent, values: Mapping[str, Part]) -> Iterator[Part]:
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            yield Part(literal)
        if name and values[name].text:
            yield values[name]


def _document(value: Any) -> Document:
    return value if isinstance(value, dict) else {}


def _project(project: Any) -> Part:
    return Part(project, project_url(project)) if isinstance(project, str) and project else Part("no project")


def _flag(project: str | None, name: Any) -> Part:
    return Part(str(name or ""), flag_url(project, name) if project and name else "")


def _strategy_name(strategy: Document, names: Names) -> str:
    number = names.strategies.get(str(strategy.get("id")))
    return f"strategy {number}" if number else "a strategy"


def _roles(document: Document) -> str:
    roles = [str(role.get("name")) for role in document.get("roles") or []]
    return f"{_and(roles)} {'role' if len(roles) == 1 else 'roles'}"


def _number_of_flags(after: Document) -> str:
    number = after.get("features", sum(after.get(key, 0) for key in ("create", "change", "same")))
    return "1 flag" if number == 1 else f"{number:,} flags" if isinstance(number, int) else "flags"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


# Fields -----------------------------------------------------------------------------------------------------

_UNTOLD = {"id", "archivedAt", "createdAt", "strategyIds", "sortOrder"}
_LABELS = {"stale": "Stale", "impressionData": "Impression data", "featureLimit": "Flag limit"}


def changes_of(event: AuditEvent, names: Names = NO_NAMES) -> list[FieldChange]:
    """The fields that changed, shortened to what a page can show."""
    try:
        changes = list(_CHANGES.get(event.type, _of_documents)(event, names))
    except (KeyError, TypeError, AttributeError):  # an earlier version recorded it, with other members
        changes = list(_of_documents(event, names))
    return _shown(changes)


def _shown(changes: Iterable[FieldChange]) -> list[FieldChange]:
    found = [FieldChange(change.field, _short(change.before), _short(change.after)) for change in changes]
    if (more := len(found) - MOST_FIELDS) > 1:
        found[MOST_FIELDS:] = [FieldChange(f"{more:,} more", None, "")]
    return found


def _of_documents(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    """Field by field. What was created or deleted is in the sentence."""
    before, after = event.before, event.after
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            if before.get(key) != after.get(key) and key not in _UNTOLD:
                yield FieldChange(_label(key), _value(before.get(key)), _value(after.get(key)))


def _of_switch(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    on = event.type == E.FEATURE_ENVIRONMENT_ENABLED
    yield FieldChange(event.environment or "", "Off" if on else "On", "On" if on else "Off")


def _of_variants(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    before, after = (
        {variant.get("name"): variant for variant in _document(side).get("variants") or []}
        for side in (event.before, event.after)
    )
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if old != new:
            yield FieldChange(str(name), _weight(old, new), _weight(new, old))


def _weight(variant: Document | None, other: Document | None) -> str | None:
    """The weight; the whole variant if the weight is the same."""
    if variant is None:
        return None
    if other is not None and variant.get("weight") == other.get("weight"):
        return diff.variant_text(variant)
    return f"{variant.get('weight', 0) / 10:g} %"


# What a difference of strategies is made of. An event of another origin may have only what changed.
_WHOLE = ("title", "disabled", "parameters", "constraints", "variants", "segments")


def _of_strategy(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    before, after = event.before, event.after
    if isinstance(before, dict) and isinstance(after, dict) and before.get("name") == after.get("name"):
        if not all(key in side for side in (before, after) for key in _WHOLE):
            yield from _of_documents(event, names)
        else:
            yield from map(_field_change, diff.strategy_diff(before, after, names.segments))
    else:
        yield FieldChange("Strategy", _summary(before, names), _summary(after, names))


def strategy_changes(before: Document, after: Document) -> list[FieldChange]:
    """The differences of two strategies, shortened to what a page can show."""
    ids = {*before["segments"], *after["segments"]}
    segments = dict(Segment.objects.filter(pk__in=ids).values_list("pk", "name"))
    if before["name"] == after["name"]:
        found = [_field_change(change) for change in diff.strategy_diff(before, after, segments)]
    else:
        names = Names({}, segments)
        found = [FieldChange("Strategy", _summary(before, names), _summary(after, names))]
    return _shown([change for change in found if (change.before or "") != (change.after or "")])


def part_changes(part: FlagPart, segments: Mapping[int, str]) -> list[FieldChange]:
    """The differences of a part of two versions of a flag, shortened to what a page can show."""
    return _shown(map(_field_change, part.changes(segments)))


def _summary(strategy: Any, names: Names) -> str | None:
    return str(strategy_summary(strategy, segments=names.segments)) if isinstance(strategy, dict) else None


def _of_import(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    before, after = event.before, event.after
    if isinstance(before, dict) and isinstance(after, dict) and "strategies" in before:
        yield from map(_field_change, diff.diff(before, after, names.segments))


def _of_revert(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    for part in differing_parts(_document(event.before), _document(event.after)):
        for change in part.changes(names.segments):
            found = _field_change(change)
            place = f"{part.environment}: {found.field.lower()}" if part.environment else found.field
            yield replace(found, field=place)


def _field_change(change: diff.Change) -> FieldChange:
    return FieldChange(_label(change.part), change.before, change.after)


def _none(event: AuditEvent, names: Names) -> Iterator[FieldChange]:
    return iter(())


_CHANGES: dict[str, Callable[[AuditEvent, Names], Iterator[FieldChange]]] = {
    E.FEATURE_ENVIRONMENT_ENABLED: _of_switch,
    E.FEATURE_ENVIRONMENT_DISABLED: _of_switch,
    E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED: _of_variants,
    E.FEATURE_STRATEGY_ADD: _of_strategy,
    E.FEATURE_STRATEGY_UPDATE: _of_strategy,
    E.FEATURE_STRATEGY_REMOVE: _of_strategy,
    E.FEATURE_IMPORTED: _of_import,
    E.FEATURE_ARCHIVED: _of_import,
    E.FEATURE_REVIVED: _of_import,
    E.FEATURE_REVERTED: _of_revert,
    E.FEATURE_STRATEGY_ORDER_CHANGED: _none,
    E.FEATURE_STALE_ON: _none,
    E.FEATURE_STALE_OFF: _none,
    E.FEATURE_PROJECT_CHANGE: _none,
    E.IMPORT_UNDONE: _none,
}


def _label(key: str) -> str:
    words = _LABELS.get(key) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()
    return words[:1].upper() + words[1:]


def _value(value: Any) -> str | None:
    if value is None or value == "" or value == []:
        return None
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= MOST_LETTERS:
        return text
    return f"{text[:MOST_LETTERS]}… ({len(text) - MOST_LETTERS:,} more characters)"
