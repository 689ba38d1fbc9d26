"""Values that are stored as texts, whatever JSON type they came in."""

from typing import Any

from playground.engine import coercion as reading


def text_of(value: Any) -> str:
    """A scalar as the text that is stored: ``true``, ``5`` (also for 5.0), and "" for null, as the reference does.

    Numbers read as those of a context do, so that the same number on both sides is equal however large it is.
    """
    if isinstance(value, str):
        return value
    return reading.text_of(value) if is_scalar(value) else str(value)


def is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
