"""Set-ups of the recorded imports: SQL of the recorded server, read as steps in our own words.

A step is either a request of the administrator, or ``{"do": [verb, …]}`` for ``tests/importer/recorded_calls.py``.
"""

import json
import re
from collections.abc import Callable
from typing import Any


def step_of(given: dict[str, Any]) -> dict[str, Any] | None:
    if "sql" not in given:
        return given
    verb = next(read for beginning, read in STATEMENTS.items() if given["sql"].startswith(beginning))
    step = verb(given["sql"])
    if step is None:
        return None
    return {"do": step} | {key: given[key] for key in ("capture",) if key in given}


def _values(statement: str) -> list[Any]:
    listed = re.search(r"VALUES \((.*)\)", statement)
    assert listed
    found = re.findall(r"'((?:[^']|'')*)'|(NULL|true|false|-?\d+)", listed[1])
    words = {"NULL": None, "true": True, "false": False}
    return [
        text.replace("''", "'")
        if not word
        else words.get(word, int(word) if word.lstrip("-").isdigit() else word)
        for text, word in found
    ]


def _project(statement: str) -> list[Any]:
    identifier, name, description = _values(statement)
    return ["make project", {"id": identifier, "name": name, "description": description}]


def _settings(statement: str) -> list[Any] | None:
    project, stickiness, _, limit, pattern, example, description = _values(statement)
    fields = {
        "default_stickiness": stickiness if stickiness != "default" else None,
        "flag_limit": limit,
        "naming_pattern": pattern,
        "naming_example": example,
        "naming_description": description,
    }
    fields = {name: value for name, value in fields.items() if value not in (None, "")}
    return ["change project", project, fields] if fields else None


def _change_settings(statement: str) -> list[Any]:
    project = re.search(r"project='([^']+)'", statement)
    pattern = re.search(r"feature_naming_pattern=(?:'([^']+)'|NULL)", statement)
    limit = re.search(r"feature_limit=(\d+|NULL)", statement)
    assert project
    fields: dict[str, Any] = {}
    if pattern:
        fields["naming_pattern"] = pattern[1] or ""
    if limit:
        fields["flag_limit"] = None if limit[1] == "NULL" else int(limit[1])
    return ["change project", project[1], fields]


def _project_environment(statement: str) -> list[Any]:
    return ["add environment", *_values(statement)[:2]]


def _segment(statement: str) -> list[Any]:
    name, description, _, constraints, project = _values(statement)
    fields = {"name": name, "description": description, "constraints": json.loads(constraints)}
    return ["make segment", fields | {"project_id": project}]


def _context_field(statement: str) -> list[Any]:
    name, _, order, legal, stickiness, project = _values(statement)
    fields = {"name": name, "sort_order": order, "legal_values": json.loads(legal)}
    return ["make context field", fields | {"stickiness": stickiness, "project_id": project}]


def _grant(statement: str) -> list[Any]:
    found = re.search(r"name='([^']+)'\), id, '([^']+)' FROM users WHERE username='([^']+)'", statement)
    assert found
    return ["grant", *found.groups()]


def _variants(statement: str) -> list[Any]:
    found = re.search(
        r"variants='(.*)' WHERE feature_name='([^']+)'(?: and environment='([^']+)')?", statement
    )
    assert found
    return ["set variants", found[2], found[3], json.loads(found[1])]


def _stale(statement: str) -> list[Any]:
    return ["mark stale", statement.rpartition("='")[2].rstrip("'")]


def _delete_flags(statement: str) -> list[Any]:
    found = re.search(r"project='([^']+)'", statement)
    assert found
    return ["delete flags", found[1]]


def _link_templates(statement: str) -> list[Any]:
    found = re.search(r"link_templates='(.*)' WHERE project='([^']+)'", statement)
    assert found
    return ["change project", found[2], {"link_templates": json.loads(found[1])}]


def _nothing(statement: str) -> None:
    """What has no place here (change requests), or is done by another step."""


STATEMENTS: dict[str, Callable[[str], list[Any] | None]] = {
    "INSERT INTO projects(": _project,
    "INSERT INTO project_settings(": _settings,
    "INSERT INTO project_environments(": _project_environment,
    "INSERT INTO segments(": _segment,
    "INSERT INTO context_fields(": _context_field,
    "INSERT INTO role_user(": _grant,
    "INSERT INTO change_request_settings(": _nothing,
    "UPDATE feature_environments": _variants,
    "UPDATE features SET stale": _stale,
    "UPDATE project_settings SET link_templates": _link_templates,
    "UPDATE project_settings": _change_settings,
    "DELETE FROM dependent_features": _nothing,
    "DELETE FROM features": _delete_flags,
}
