"""Validation rules for context fields, used by the API, the console, the admin site and the import."""

from collections.abc import Iterator
from typing import Any

from flagadmin.core.errors import Problem
from projects.models import ContextField
from projects.rules import name_problems, text_problems

MAX_LEGAL_VALUE_LENGTH = 100
RESERVED_FIELDS = ("validate",)  # used in place of a name in URLs below /api/admin/context/


def context_field_problems(field: ContextField) -> Iterator[Problem]:
    # A field of an earlier version may have such a name, and can be edited.
    yield from name_problems(field.name, reserved=RESERVED_FIELDS if field._state.adding else ())
    yield from legal_value_problems(field.legal_values)


def legal_value_problems(values: Any, path: str = "legalValues") -> Iterator[Problem]:
    """Problems of ``[{"value": string, "description": string or null}]``. Values must be unique."""
    if not isinstance(values, list):
        yield Problem(path, "must be a list")
        return
    seen: set[str] = set()
    for index, item in enumerate(values):
        value_path = f"{path}[{index}]"
        value = item.get("value") if isinstance(item, dict) else None
        if not isinstance(value, str):
            yield Problem(f"{value_path}.value", "is required and must be a string")
            continue
        if not 1 <= len(value) <= MAX_LEGAL_VALUE_LENGTH:
            yield Problem(f"{value_path}.value", f"must have 1 to {MAX_LEGAL_VALUE_LENGTH} characters")
        if value in seen:
            yield Problem(f"{value_path}.value", f'"{value}" is listed more than once')
        seen.add(value)
        yield from text_problems(item.get("description"), f"{value_path}.description")
