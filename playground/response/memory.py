"""Estimates the memory of a compiled and serialised document, for a cache limited in bytes.

Measured on CPython 3.11: it grows with the document's JSON and with how many values that has, which its commas tell.
Documents of many shapes take between half and twice the estimate (tests/playground/response/test_memory.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playground.response.json_text import as_json

DOCUMENT = 650
BYTE = 2.5
VALUE = 100


def memory_of(document: Mapping[str, Any]) -> int:
    """Bytes held for a flag or a segment: compiled, as fragments of answers, and as it was written last."""
    text = as_json(document)
    return int(DOCUMENT + BYTE * len(text) + VALUE * text.count(b","))
