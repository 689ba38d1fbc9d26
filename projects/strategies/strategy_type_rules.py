"""Validation rules for custom strategy types."""

from collections.abc import Iterator
from typing import Any

from flagadmin.core.errors import Problem
from flagadmin.core.wording import choices
from projects.models import StrategyType
from projects.rules import name_problems, text_problems

PARAMETER_TYPES = frozenset({"string", "percentage", "list", "number", "boolean"})


MAX_TYPE_LENGTH = 100


def strategy_type_problems(strategy_type: StrategyType) -> Iterator[Problem]:
    yield from name_problems(strategy_type.name)
    yield from parameter_problems(strategy_type.parameters)


def parameter_problems(parameters: Any, path: str = "parameters") -> Iterator[Problem]:
    """Problems of ``[{"name": …, "type": …, "description": …, "required": boolean}]``."""
    if not isinstance(parameters, list):
        yield Problem(path, "must be a list")
        return
    seen: set[str] = set()
    for index, item in enumerate(parameters):
        parameter_path = f"{path}[{index}]"
        if not isinstance(item, dict):
            yield Problem(parameter_path, "must be an object")
            continue
        yield from _find_parameter_problems(item, parameter_path)
        name = item.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(f"{parameter_path}.name", f'"{name}" is listed more than once')
        elif isinstance(name, str):
            seen.add(name)


def _find_parameter_problems(item: dict[str, Any], path: str) -> Iterator[Problem]:
    if not isinstance(item.get("name"), str) or not item["name"]:
        yield Problem(f"{path}.name", "is required and must be a string")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in PARAMETER_TYPES:
        yield Problem(f"{path}.type", f"must be one of {choices(PARAMETER_TYPES)}")
    if not isinstance(item.get("required", False), bool):
        yield Problem(f"{path}.required", "must be true or false")
    yield from text_problems(item.get("description"), f"{path}.description")
