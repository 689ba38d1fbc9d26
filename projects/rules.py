"""The rules of what flags live in and are made of: projects, environments, segments, context fields and the like.

Every function yields all problems it finds. The same rules serve the API, the admin site and the import; the paths
are those of the API's bodies.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from flagadmin.errors import Problem, choices
from playground.engine import patterns
from projects.flags.name_rules import name_problem, pattern_problem
from projects.limits import Limits
from projects.models import ContextField, Environment, Project, Segment, StrategyType, TagType
from projects.strategies.constraint_rules import constraints_problems, shortened

COLOR = re.compile(r"#[0-9A-Fa-f]{6}\Z")
PARAMETER_TYPES = frozenset({"string", "percentage", "list", "number", "boolean"})
LONGEST_SEGMENT_NAME = 255
LONGEST_TAG_TYPE = 50
LONGEST_TYPE = 100
LONGEST_PROJECT_NAME = 255
MOST_FLAGS = 2**31 - 1
# What stands where a project's id stands in the addresses below /api/admin/projects/ and /projects/.
RESERVED_PROJECT_IDS = frozenset({"archive", "revive", "roles", "validate", "new"})
LONGEST_LEGAL_VALUE = 100


def name_problems(name: str, path: str = "name", *, shortest: int = 1) -> Iterator[Problem]:
    """A name that stands in addresses: letters, digits and ``- . _ ~``, so that it needs no escape there."""
    if problem := name_problem(name):
        yield Problem(path, problem)
    elif len(name) < shortest:
        yield Problem(path, f"must have at least {shortest} characters")


def context_field_problems(field: ContextField) -> Iterator[Problem]:
    yield from name_problems(field.name)
    yield from legal_value_problems(field.legal_values)


def legal_value_problems(values: Any, path: str = "legalValues") -> Iterator[Problem]:
    """``[{"value": text, "description": text or null}]``, each value once."""
    if not isinstance(values, list):
        yield Problem(path, "must be a list")
        return
    seen: set[str] = set()
    for index, item in enumerate(values):
        here = f"{path}[{index}]"
        value = item.get("value") if isinstance(item, dict) else None
        if not isinstance(value, str):
            yield Problem(f"{here}.value", "is required and must be text")
            continue
        if not 1 <= len(value) <= LONGEST_LEGAL_VALUE:
            yield Problem(f"{here}.value", f"must have 1 to {LONGEST_LEGAL_VALUE} characters")
        if value in seen:
            yield Problem(f"{here}.value", f'"{value}" is there twice')
        seen.add(value)
        yield from _text(item.get("description"), f"{here}.description")


def segment_problems(
    segment: Segment, *, legal_values: Mapping[str, frozenset[str]], limits: Limits
) -> Iterator[Problem]:
    """``legal_values`` by context field, of those fields that have some."""
    if not segment.name.strip():
        yield Problem("name", "a name is needed")
    elif len(segment.name) > LONGEST_SEGMENT_NAME:
        yield Problem("name", f"must have at most {LONGEST_SEGMENT_NAME} characters")
    yield from constraints_problems(
        segment.constraints, "constraints", legal_values=legal_values, limits=limits
    )


def strategy_type_problems(strategy_type: StrategyType) -> Iterator[Problem]:
    yield from name_problems(strategy_type.name)
    yield from parameter_problems(strategy_type.parameters)


def parameter_problems(parameters: Any, path: str = "parameters") -> Iterator[Problem]:
    """``[{"name": text, "type": one of PARAMETER_TYPES, "description": text, "required": boolean}]``."""
    if not isinstance(parameters, list):
        yield Problem(path, "must be a list")
        return
    seen: set[str] = set()
    for index, item in enumerate(parameters):
        here = f"{path}[{index}]"
        if not isinstance(item, dict):
            yield Problem(here, "must be an object")
            continue
        yield from _parameter(item, here)
        name = item.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(f"{here}.name", f'"{name}" is there twice')
        elif isinstance(name, str):
            seen.add(name)


def _parameter(item: dict[str, Any], here: str) -> Iterator[Problem]:
    if not isinstance(item.get("name"), str) or not item["name"]:
        yield Problem(f"{here}.name", "is required and must be text")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in PARAMETER_TYPES:
        yield Problem(f"{here}.type", f"must be one of {choices(PARAMETER_TYPES)}")
    if not isinstance(item.get("required", False), bool):
        yield Problem(f"{here}.required", "must be true or false")
    yield from _text(item.get("description"), f"{here}.description")


def tag_type_problems(tag_type: TagType) -> Iterator[Problem]:
    yield from name_problems(tag_type.name, shortest=2)
    if len(tag_type.name) > LONGEST_TAG_TYPE:
        yield Problem("name", f"must have at most {LONGEST_TAG_TYPE} characters")
    if tag_type.color and not COLOR.match(tag_type.color):
        yield Problem("color", f'"{tag_type.color}" is no colour; write it as #FFFFFF')
    if tag_type.icon and len(tag_type.icon) > 255:
        yield Problem("icon", "must have at most 255 characters")


def environment_problems(environment: Environment) -> Iterator[Problem]:
    yield from name_problems(environment.name)
    if not 1 <= len(environment.type) <= LONGEST_TYPE:
        yield Problem("type", f"must have 1 to {LONGEST_TYPE} characters")


def project_problems(project: Project, *, stickiness: Collection[str]) -> Iterator[Problem]:
    """``stickiness``: the names that the default stickiness may have."""
    yield from name_problems(project.pk, "id")
    if project.pk in RESERVED_PROJECT_IDS:
        yield Problem("id", f"{project.pk} is part of other addresses and cannot be a project's id")
    if not project.name.strip():
        yield Problem("name", "a name is needed")
    elif len(project.name) > LONGEST_PROJECT_NAME:
        yield Problem("name", f"must have at most {LONGEST_PROJECT_NAME} characters")
    if project.default_stickiness not in stickiness:
        known = choices(stickiness)
        yield Problem("defaultStickiness", f"there is no {project.default_stickiness}. There are: {known}")
    if project.flag_limit is not None and not 1 <= project.flag_limit <= MOST_FLAGS:
        yield Problem("featureLimit", f"must be from 1 to {MOST_FLAGS}, or null for no limit")
    yield from naming_problems(project)


def naming_problems(project: Project, path: str = "featureNaming") -> Iterator[Problem]:
    """The pattern must be one for RE2, whose time is linear in the name; the example must match it."""
    pattern, example = project.naming_pattern, project.naming_example
    if pattern and (fault := patterns.fault(pattern)):
        yield Problem(f"{path}.pattern", f"{shortened(pattern)} {fault}")
    elif pattern and example and pattern_problem(example, project):
        yield Problem(f"{path}.example", f"{example} does not match the pattern {pattern}")
    elif not pattern and example:
        yield Problem(f"{path}.example", "an example needs a pattern that it follows")
    elif not pattern and project.naming_description:
        yield Problem(f"{path}.description", "a description needs a pattern that it explains")


def _text(value: Any, path: str) -> Iterator[Problem]:
    if value is not None and not isinstance(value, str):
        yield Problem(path, "must be text")


def tidy(items: Sequence[dict[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The known keys that were given, in one order: what is stored of a list of objects."""
    return [{key: item[key] for key in keys if item.get(key) is not None} for item in items]
