"""Builds export documents of flags, which the import accepts.

The number of SQL statements does not depend on the number of flags.
"""

from collections.abc import Iterable
from typing import Any

import orjson
from django.db import connection

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from projects.definitions import FlagParts, read_flag_parts
from projects.flags.payloads.stored import read_schemas

_FLAGS = """
SELECT f.id, f.name, f.description, f.type, f.project_id, f.stale, f.impression_data, f.archived_at IS NOT NULL
  FROM projects_flag f WHERE {condition} ORDER BY f.name COLLATE "C"
"""
_TAGS = """
SELECT flag_id, tag_type_id, value FROM projects_flagtag WHERE flag_id = ANY(%s) ORDER BY flag_id, id
"""
_LINKS = """
SELECT flag_id, id::text, url, title FROM projects_flaglink WHERE flag_id = ANY(%s) ORDER BY flag_id, created_at, id
"""
_CONTEXT_FIELDS = """
SELECT name, description, stickiness, sort_order, legal_values, project_id
  FROM projects_contextfield WHERE name = ANY(%s) ORDER BY name COLLATE "C"
"""
_SEGMENTS = 'SELECT id, name, constraints FROM projects_segment WHERE id = ANY(%s) ORDER BY name COLLATE "C"'
_TAG_TYPES = "SELECT name, description, icon, color FROM projects_tagtype WHERE name = ANY(%s) ORDER BY name"


def export_flags(
    environment: str,
    *,
    names: Iterable[str] | None = None,
    tag: str | None = None,
    project: str | None = None,
    readable: Iterable[str] | None = None,
    archived: bool = False,
    full_segments: bool = False,
) -> Document:
    """Flags as configured in an environment, in the reference's export format plus strategies' ``sortOrder``.

    Segments are ``{id, name}``, because the reference rejects other members. ``full_segments`` adds their
    ``constraints``, from which this server's import can create them, the context fields in these, and
    ``payloadSchemas`` if there are any.

    ``tag`` (a tag value, of any type) takes precedence over ``names``, and ``names`` over ``project``.
    Archived flags are included if ``names`` lists them or ``archived`` is true. Only flags of ``readable``
    projects are exported; None means all projects.
    """
    condition, values = _make_condition(names, tag, project, archived)
    if readable is not None:
        condition, values = f"{condition} AND f.project_id = ANY(%s)", [*values, list(readable)]
    flags = fetch_rows(_FLAGS.format(condition=condition), values)
    return _make_document(flags, environment, full_segments)


def project_backup(project: str) -> dict[str, Document]:
    """An export document for each environment, with archived flags and segments' constraints."""
    environments = fetch_rows(
        "SELECT environment_id FROM projects_projectenvironment WHERE project_id = %s ORDER BY environment_id",
        [project],
    )
    return {
        name: export_flags(name, project=project, archived=True, full_segments=True)
        for (name,) in environments
    }


def _make_condition(
    names: Iterable[str] | None, tag: str | None, project: str | None, archived: bool
) -> tuple[str, list[Any]]:
    names = list(names or ())
    active = "true" if archived else "f.archived_at IS NULL"
    if tag is not None:
        has_tag = "EXISTS (SELECT FROM projects_flagtag t WHERE t.flag_id = f.id AND t.value = %s)"
        return f"{has_tag} AND {active}", [tag]
    if names:
        return "f.name = ANY(%s)", [names]
    if project is not None:
        return f"f.project_id = %s AND {active}", [project]
    return active, []


def _make_document(flags: list[tuple[Any, ...]], environment: str, full_segments: bool) -> Document:
    names = {row[0]: row[1] for row in flags}
    with connection.cursor() as cursor:
        parts = read_flag_parts(cursor, list(names), environment)
    strategies = [
        strategy | {"featureName": name}
        for flag_id, name in names.items()
        for strategy in parts.strategies.get(flag_id, ())
    ]
    switches = [
        _switch(parts, flag_id, name, environment, archived=archived)
        for flag_id, name, *_, archived in flags
        if flag_id in parts.states
    ]
    tags = [_tag(name, *tag) for name, listed in _read_by_flag(_TAGS, names) for tag in listed]
    segments = [
        _make_segment(*row, full=full_segments) for row in fetch_rows(_SEGMENTS, [sorted(parts.segments)])
    ]
    document = {
        "features": [_make_feature(*row[1:]) for row in flags],
        "featureStrategies": strategies,
        "featureEnvironments": switches,
        "contextFields": [
            _make_context_field(*row)
            for row in fetch_rows(
                _CONTEXT_FIELDS, [sorted(_collect_used_fields(strategies, switches, segments))]
            )
        ],
        "featureTags": tags,
        "segments": segments,
        "tagTypes": [
            _tag_type(*row) for row in fetch_rows(_TAG_TYPES, [sorted({tag["tagType"] for tag in tags})])
        ],
        "dependencies": [
            {"feature": name, "dependencies": parts.parents[flag_id]}
            for flag_id, name in names.items()
            if flag_id in parts.parents
        ],
        "links": [
            {"feature": name, "links": [_make_link(*link) for link in listed]}
            for name, listed in _read_by_flag(_LINKS, names)
        ],
    }
    if full_segments and (schemas := read_schemas(names.values())):
        document["payloadSchemas"] = [{"feature": name, "schema": schemas[name]} for name in sorted(schemas)]
    return document


def _read_by_flag(statement: str, names: dict[int, str]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """The rows of a statement, which begin with the id of a flag, by the flags' names in their order."""
    rows: dict[int, list[tuple[Any, ...]]] = {}
    for flag_id, *values in fetch_rows(statement, [list(names)]):
        rows.setdefault(flag_id, []).append(tuple(values))
    return [(name, rows[flag_id]) for flag_id, name in names.items() if flag_id in rows]


def _make_feature(
    name: str,
    description: str | None,
    kind: str,
    project: str,
    stale: bool,
    impression_data: bool,
    archived: bool,
) -> Document:
    return {
        "name": name,
        "description": description,
        "type": kind,
        "project": project,
        "stale": stale,
        "impressionData": impression_data,
        "archived": archived,
    }


def _switch(parts: FlagParts, flag_id: int, flag: str, environment: str, *, archived: bool) -> Document:
    enabled, variants = parts.read_state(flag_id)
    return {
        "enabled": enabled and not archived,
        "featureName": flag,
        "environment": environment,
        "variants": variants,
        "name": flag,
    }


def _tag(flag: str, tag_type: str, value: str) -> Document:
    return {"featureName": flag, "tagType": tag_type, "tagValue": value}


def _tag_type(name: str, description: str, icon: str | None, color: str | None) -> Document:
    return {"name": name, "description": description or None, "icon": icon, "color": color}


def _make_segment(identifier: int, name: str, constraints: str, *, full: bool) -> Document:
    document: Document = {"id": identifier, "name": name}
    return document | {"constraints": orjson.loads(constraints)} if full else document


def _make_context_field(
    name: str, description: str | None, stickiness: bool, order: int, legal_values: str, project: str | None
) -> Document:
    document = {
        "name": name,
        "description": description,
        "stickiness": stickiness,
        "sortOrder": order,
        "legalValues": orjson.loads(legal_values),
    }
    return document if project is None else document | {"project": project}


def _collect_used_fields(
    strategies: list[Document], switches: list[Document], segments: list[Document]
) -> set[str]:
    """The context fields used by constraints, stickiness (of strategies and variants) and overrides.

    Segments count if the export has their constraints.
    """
    used = {
        constraint["contextName"]
        for document in (*strategies, *segments)
        for constraint in document.get("constraints", ())
    }
    used |= {
        strategy["parameters"]["stickiness"]
        for strategy in strategies
        if "stickiness" in strategy["parameters"]
    }
    for document in (*strategies, *switches):
        for variant in document["variants"]:
            used.add(variant.get("stickiness", ""))
            used |= {override["contextName"] for override in variant.get("overrides", ())}
    return used


def _make_link(identifier: str, url: str, title: str | None) -> Document:
    return {"id": identifier, "url": url, "title": title}
