"""Writes the context fields and segments of a directory, each with a line about its changes.

Also finds the uses of a segment in projects that are not in the directory.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import orjson

from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from importer.as_code.documents import keep_spelling, make_field_entry, make_segment_entry
from projects.context_fields.actions import create_context_field, update_context_field
from projects.models import ContextField, Flag, Segment, Strategy
from projects.segments.actions import create_segment, update_segment
from projects.strategies.constraint_rules import make_constraint


def make_line(action: str, kind: str, name: str, project: str | None) -> Document:
    return {"action": action, "kind": kind, "name": name} | ({"project": project} if project else {})


def write_field(entry: Mapping[str, Any], caller: Caller) -> Iterator[Document]:
    name, project = entry["name"], entry.get("project") or None
    values = {
        "description": entry.get("description") or None,
        "stickiness": entry.get("stickiness", False),
        "sort_order": entry.get("sortOrder", 0),
        "legal_values": entry.get("legalValues", []),
    }
    stored = ContextField.objects.filter(name=name).first()
    if stored is None:
        create_context_field(values | {"name": name, "project_id": project}, caller=caller)
        yield make_line("create", "context field", name, project)
    elif stored.project_id != project:
        raise ValidationError.at("project", _describe_owner(stored.project_id))
    elif any(getattr(stored, key) != value for key, value in values.items()):
        before = make_field_entry(stored)
        after = make_field_entry(update_context_field(name, values, caller=caller, project=project))
        yield from _list_changed("context field", name, project, before, after)


def write_segment(entry: Mapping[str, Any], caller: Caller, *, may_change: bool) -> Iterator[Document]:
    name, project = entry["name"], entry.get("project") or None
    stored = Segment.objects.filter(name=name).first()
    constraints = _read_constraints(entry, stored)
    values: dict[str, Any] = {"description": entry.get("description") or "", "constraints": constraints}
    if stored is None:
        create_segment(values | {"name": name, "project_id": project}, caller=caller)
        yield make_line("create", "segment", name, project)
    elif stored.project_id != project:
        raise ValidationError.at("project", _describe_owner(stored.project_id))
    elif may_change and any(getattr(stored, key) != value for key, value in values.items()):
        before = make_segment_entry(stored)
        after = make_segment_entry(update_segment(stored.pk, values, caller=caller))
        yield from _list_changed("segment", name, project, before, after)


def _read_constraints(entry: Mapping[str, Any], stored: Segment | None) -> list[Any]:
    constraints: list[Any] = [make_constraint(constraint) for constraint in entry["constraints"]]
    return constraints if stored is None else keep_spelling(constraints, stored.constraints)


def find_users_elsewhere(
    segments: Iterable[Mapping[str, Any]], projects: Collection[str], caller: Caller
) -> list[tuple[str, str]]:
    """Other readable projects and their environments with flags that use a changed segment of all projects."""
    wanted = {entry["name"]: entry for entry in segments}
    changed = [
        row.pk
        for row in Segment.objects.filter(name__in=wanted, project=None)
        if _read_constraints(wanted[row.name], row) != row.constraints
    ]
    flags = Flag.objects.active().readable_by(caller).exclude(project__in=projects)
    users = (
        Strategy.objects.filter(segments__in=changed, flag__in=flags) if changed else Strategy.objects.none()
    )
    return sorted({*users.values_list("flag__project", "environment")})


def _describe_owner(project: str | None) -> str:
    return f"must be {project}, to which it belongs" if project else "must be left out: it is of all projects"


def _list_changed(
    kind: str, name: str, project: str | None, before: Document, after: Document
) -> Iterator[Document]:
    changes = [
        {"part": key, "before": _format_value(before.get(key)), "after": _format_value(after.get(key))}
        for key in {**before, **after}
        if before.get(key) != after.get(key)
    ]
    if changes:
        yield make_line("change", kind, name, project) | {"changes": changes}


def _format_value(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
