"""Reads stored flags, segments and context fields as documents in the format of files."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from django.db.models import Q

from flagadmin.core.db.transactions import consistent_reads
from flagadmin.core.document import Document
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from importer.as_code.schemas import MAX_PROJECTS
from importer.bulk_work import bulk_work
from projects.access import check_project
from projects.export import export_flags
from projects.models import ContextField, ProjectEnvironment, Segment

IN_FLAG = ("type", "description", "stale", "impressionData")
PARAMETERS = ("rollout", "stickiness", "groupId")
CONSTRAINT = ("contextName", "operator", "inverted", "caseInsensitive", "value", "values")
VARIANT = ("name", "weight", "weightType", "stickiness", "payload", "overrides")


@bulk_work
def read_directory(projects: Iterable[str], *, caller: Caller) -> Document:
    """``{flags: [{project, flag}], segments, contextFields, used}`` of these projects, without empty members.

    Includes the segments and context fields that the projects can use; ``used`` names those that their flags do use.
    Reads everything in one database snapshot. Raises ValidationError for too many projects, and for one that the
    caller cannot read.
    """
    names = sorted(set(projects))
    if len(names) > MAX_PROJECTS:
        raise ValidationError.at("project", f"must be at most {MAX_PROJECTS}, not {len(names):,}")
    with consistent_reads():
        ids = [check_project(caller, project).pk for project in names]
        flags: list[Document] = []
        used: dict[str, set[str]] = {"segments": set(), "contextFields": set()}
        for project in ids:
            flags += ({"project": project, "flag": flag} for flag in _read_project(project, used))
        usable = Q(project__in=ids) | Q(project=None)
        segments = Segment.objects.filter(usable).order_by("name")
        fields = ContextField.objects.filter(usable).order_by("name")
        return {
            "flags": flags,
            "segments": [make_segment_entry(row) for row in segments],
            "contextFields": [make_field_entry(row) for row in fields],
            "used": {kind: sorted(names) for kind, names in used.items()},
        }


def _read_project(project: str, used: dict[str, set[str]]) -> list[Document]:
    """The project's flags. Adds the names of the segments and context fields that they use."""
    links = ProjectEnvironment.objects.filter(project=project).order_by("environment_id")
    flags: dict[str, Document] = {}
    for environment in links.values_list("environment_id", flat=True):
        exported = export_flags(environment, project=project, full_segments=True)
        if not flags:
            flags = {document["name"]: document for document in _list_flags(exported)}
        for name, state in read_states(exported).items():
            flags[name]["environments"][environment] = state
        for kind, names in used.items():
            names.update(entry["name"] for entry in exported[kind])
    return list(flags.values())


def _list_flags(exported: Document) -> Iterator[Document]:
    """Yields the parts of flags that all environments share."""
    tags: dict[str, list[str]] = {}
    for tag in exported["featureTags"]:
        tags.setdefault(tag["featureName"], []).append(f"{tag['tagType']}:{tag['tagValue']}")
    links = {
        entry["feature"]: [_drop_empty(link, "title", drop=("id",)) for link in entry["links"]]
        for entry in exported["links"]
    }
    parents = {
        entry["feature"]: [_make_parent(parent) for parent in entry["dependencies"]]
        for entry in exported["dependencies"]
    }
    for feature in exported["features"]:
        name = feature["name"]
        described = {key: feature[key] for key in IN_FLAG if feature[key] not in (None, "", False)}
        lists = {
            "tags": sorted(tags.get(name, ())),
            "links": links.get(name),
            "dependencies": parents.get(name),
        }
        yield {"name": name, **described, **{key: value for key, value in lists.items() if value}} | {
            "environments": {}
        }


def read_states(exported: Document) -> dict[str, Document]:
    """Reads the settings of flags in the environment of an export, by name."""
    names = {segment["id"]: segment["name"] for segment in exported["segments"]}
    states = {state["featureName"]: _make_state(state) for state in exported["featureEnvironments"]}
    strategies: dict[str, list[Document]] = {}
    for strategy in exported["featureStrategies"]:
        strategies.setdefault(strategy["featureName"], []).append(_make_strategy(strategy, names))
    for feature in exported["features"]:
        name = feature["name"]
        state = states.setdefault(name, {"enabled": False})
        if name in strategies:
            states[name] = {"enabled": state["enabled"], "strategies": strategies[name], **state}
    return states


def _make_state(state: Document) -> Document:
    variants = [_sort_members(variant, VARIANT) for variant in state["variants"]]
    return {"enabled": state["enabled"]} | ({"variants": variants} if variants else {})


def _make_strategy(strategy: Document, segments: Mapping[int, str]) -> Document:
    entry = {
        "name": strategy["name"],
        "title": strategy["title"],
        "disabled": strategy["disabled"],
        "parameters": _sort_members(strategy["parameters"], PARAMETERS),
        "constraints": [_make_constraint(constraint) for constraint in strategy["constraints"]],
        "segments": [segments[key] for key in strategy["segments"]],
        "variants": [_sort_members(variant, VARIANT) for variant in strategy["variants"]],
    }
    return _drop_empty(entry, *(key for key in entry if key != "name"))


def keep_spelling(constraints: Iterable[Any], stored: Iterable[Any]) -> list[Any]:
    """Keeps the spelling of equivalent stored constraints, with or without empty members."""
    spellings = {orjson.dumps(_make_constraint(constraint)): constraint for constraint in stored}
    return [
        spellings.get(orjson.dumps(_make_constraint(constraint)), constraint) for constraint in constraints
    ]


def _make_constraint(constraint: Document) -> Document:
    return _drop_empty(
        _sort_members(constraint, CONSTRAINT), "values", "value", "inverted", "caseInsensitive"
    )


def _sort_members(entry: Document, order: tuple[str, ...]) -> Document:
    """Sorts members, because PostgreSQL stores those of JSON in an order of its own."""
    return {key: entry[key] for key in (*order, *sorted(entry)) if key in entry}


def _make_parent(parent: Document) -> Document:
    entry = _drop_empty(parent, "variants")
    return entry if not entry["enabled"] else {key: entry[key] for key in entry if key != "enabled"}


def make_segment_entry(segment: Segment) -> Document:
    entry = {
        "name": segment.name,
        "description": segment.description,
        "project": segment.project_id,
        "constraints": [_make_constraint(constraint) for constraint in segment.constraints],
    }
    return _drop_empty(entry, "description", "project")


def make_field_entry(field: ContextField) -> Document:
    entry = {
        "name": field.name,
        "description": field.description,
        "project": field.project_id,
        "stickiness": field.stickiness,
        "sortOrder": field.sort_order,
        "legalValues": [_drop_empty(value, "description") for value in field.legal_values],
    }
    return _drop_empty(entry, "description", "project", "stickiness", "sortOrder", "legalValues")


def _drop_empty(entry: Mapping[str, Any], *keys: str, drop: tuple[str, ...] = ()) -> Document:
    """Drops empty members, and the members in ``drop``."""
    return {
        key: value
        for key, value in entry.items()
        if key not in drop and not (key in keys and value in (None, "", [], {}, False, 0))
    }
