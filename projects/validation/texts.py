"""Values that are stored as texts, whatever JSON type they came in."""

from typing import Any


def text_of(value: Any) -> str:
    """A scalar as the text that is stored: ``true``, ``5`` (also for 5.0), and "" for null, as the reference does."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
