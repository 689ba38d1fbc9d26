"""Converts JSON values to the types that the engine expects, in stored definitions and in contexts.

Every value must give a definite result, so these functions never raise: a value of the wrong type becomes empty or a
string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def to_text(value: object) -> str:
    """The string of a JSON value as JavaScript's `String()` returns it: 5.0 is "5", True is "true", None is ""."""
    if isinstance(value, str):
        return value if value.isascii() else _make_storable(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _format_number(value)
    try:
        return _make_storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    except (ValueError, RecursionError):
        return ""


def _format_number(value: int | float) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    if 1e-6 <= abs(number) < 1e21:
        digits = format(Decimal(repr(number)), "f")
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    mantissa, _, exponent = repr(number).partition("e")
    return f"{mantissa}e{int(exponent):+d}"


def _make_storable(text: str) -> str:
    """The text in a form that UTF-8 can encode: a lone surrogate becomes "?"."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


# The characters that Python strips, except U+001C to U+001F, which Unicode and SDKs do not count as white space.
_WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))


def trim(text: str) -> str:
    """The string without surrounding white space, as trimmed by SDKs."""
    return text.strip(_WHITE_SPACE)


def string_of(value: object) -> str | None:
    """A name or a list item: the text of a scalar, None for null and for structured values."""
    if type(value) is str:  # the usual case
        return to_text(value)
    return None if value is None or isinstance(value, Mapping | list) else to_text(value)


def strings_of(value: object) -> list[str]:
    """The strings of a stored list, without nulls, lists and objects; empty if the value is not a list."""
    return [text for item in items_of(value) if (text := string_of(item)) is not None]


def items_of(value: object) -> list[Any]:
    """The stored list; empty if the value is not a list."""
    if type(value) is list:  # the usual case, and testing for a union of types takes three times as long
        return value[:]
    return list(value) if isinstance(value, list | tuple) else []


def mapping_of(value: object) -> Mapping[str, Any]:
    """The stored object; empty if the value is not an object."""
    # Most are plain dicts, and testing for a Mapping takes ten times as long.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """The stored list of objects; items of other types become empty objects, so that indices stay the same."""
    if not value:  # the usual case
        return []
    return [mapping_of(item) for item in items_of(value)]


def parameters_of(value: object) -> dict[str, str]:
    """Strategy parameters with all values as strings, null as "", as SDKs receive them."""
    return {to_text(key): to_text(item) for key, item in mapping_of(value).items()}


def weight_of(value: object) -> int:
    """A variant's weight; 0 if it is negative or not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        return max(int(float(value)), 0)
    except (ValueError, OverflowError):
        return 0
