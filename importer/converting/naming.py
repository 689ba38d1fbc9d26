"""Names of variants for products whose values have none."""

from collections.abc import Mapping
from typing import Any

from importer.converting.files import format_text

MAX_SHOWN = 50


def find_name(values: Mapping[str, Any], value: Any) -> str | None:
    """The name of a value, compared as JSON: 1 is not true."""
    return next((name for name, known in values.items() if _is_same(known, value)), None)


def add_value(values: dict[str, Any], value: Any) -> str:
    """The name of a value, which is added if it is not there yet."""
    name = find_name(values, value)
    if name is None:
        name = make_name(value, values)
        values[name] = value
    return name


def make_name(value: Any, taken: Mapping[str, Any]) -> str:
    """The value itself if it is a short text, and a number otherwise."""
    text = format_text(value) if isinstance(value, str | int | float) else ""
    name = text if 0 < len(text) <= MAX_SHOWN else f"value-{len(taken) + 1}"
    return name if name not in taken else f"{name}-{len(taken) + 1}"


def _is_same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) is isinstance(right, bool) and left == right
