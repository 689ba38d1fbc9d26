"""Parses and formats lists of values in text inputs: one per line or separated by commas.

A value that would be split or trimmed is written as a JSON string: ``"US, DE"``. ``js/chips.js`` implements the
same format.
"""

import json
import re
from collections.abc import Iterable

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.json_bodies import parse_json

_BLANK = r"[ \t\u00a0]*"
_JSON_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_ITEM = re.compile(rf"{_BLANK}(?:({_JSON_STRING}){_BLANK}(?=[,\r\n]|\Z)|([^,\r\n]*))")


def read_values(text: str) -> list[str]:
    """The values of an entered list, in order. Strips surrounding spaces and ignores empty values."""
    values = []
    for match in _ITEM.finditer(text):
        quoted, plain = match.groups()
        if quoted is not None:
            values.append(_read_string(quoted))
        elif value := plain.rstrip(" \t\u00a0"):
            values.append(value)
    return values


def _read_string(quoted: str) -> str:
    """The text of a JSON string. If it cannot be stored (NUL or a lone surrogate), it counts as literal text."""
    try:
        return str(parse_json(quoted.encode()))
    except ValidationError:
        return quoted


def format_values(values: Iterable[str]) -> str:
    """One value per line, in a form that :func:`read_values` reads back unchanged."""
    return "\n".join(_format_value(value) for value in values)


def _format_value(value: str) -> str:
    return value if read_values(value) == [value] else json.dumps(value, ensure_ascii=False)
