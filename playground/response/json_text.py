"""Serializes any stored value as JSON, however it is nested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from playground.engine.coercion import to_text

DEEPEST = 100


def as_json(value: object) -> bytes:
    """JSON of any stored value; what JSON or UTF-8 cannot hold becomes null or "?"."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return orjson.dumps(_make_presentable(value, DEEPEST))


def as_json_texts(texts: Iterable[str]) -> list[bytes]:
    """Every text as a JSON string. All are encoded together: a call for each takes ten times as long."""
    encoded = orjson.dumps(list(texts), option=orjson.OPT_INDENT_2)[4:-2]
    return encoded.split(b",\n  ") if encoded else []  # no JSON string holds a line break


def _make_presentable(value: Any, depth: int) -> Any:
    """A value without numbers beyond 64 bit, lone surrogates, and more than `depth` levels."""
    if not depth:
        return None
    if isinstance(value, Mapping):
        return {to_text(key): _make_presentable(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_make_presentable(item, depth - 1) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(to_text(value))
    return to_text(value) if isinstance(value, str) else value
