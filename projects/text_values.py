"""Converts JSON values to the strings that are stored."""

from typing import Any

from playground.engine import literals as reading


def format_scalar(value: Any) -> str:
    """A scalar as a string: ``true``, ``5`` (also for 5.0), and "" for null, as in the reference.

    Converts numbers like context values, so that equal numbers match whatever their size.
    """
    if isinstance(value, str):
        return value
    return reading.to_text(value) if is_scalar(value) else str(value)


def is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
