"""Reads JSON bodies, bounded: size after decompression, number of values, depth. Knows no framework."""

import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from flagadmin.core import errors
from flagadmin.core.errors import AppError, join_path


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """The body decompressed from gzip or deflate. Raises PayloadTooLarge beyond ``limit`` bytes of output."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise errors.ContentTypeNotAccepted(
            f"Content-Encoding {encoding} is not accepted. Use gzip, or none."
        )
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        inflated = decoder.decompress(body, limit + 1)
    except zlib.error as exc:
        raise errors.ValidationError("The body is not valid gzip data.") from exc
    if len(inflated) > limit:
        raise too_large(limit)
    if not decoder.eof:
        raise errors.ValidationError("The body is not valid gzip data: it ends too early.")
    if decoder.unused_data:
        raise errors.ValidationError("The body is not valid gzip data: something follows its end.")
    return inflated


def too_large(limit: int) -> AppError:
    size = f"{limit / 1_000_000:g} MB" if limit >= 1_000_000 else f"{limit:,} bytes"
    return errors.PayloadTooLarge(f"The body is larger than the {size} accepted here.")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The general limits of a JSON document. Fields have their own in addition."""

    items: int = 10_000  # of one list
    members: int = 10_000  # of one object
    values: int = 200_000  # of the whole document
    depth: int = 32
    containers: int = 5_000_000  # lists and objects among the values, which take longest to make


MANY_VALUES = Bounds(values=1_000_000)
"""Of bodies with thousands of objects."""


def read_json(body: bytes, bounds: Bounds) -> Any:
    """Raises ValidationError for malformed JSON, NaN, lone surrogates, NUL characters, and beyond the bounds."""
    check_values(body, bounds)
    data = parse_json(body)
    check_bounds(data, bounds)
    return data


def parse_json(body: bytes) -> Any:
    """A byte order mark, as Windows writes it, is skipped. Raises ValidationError with the position of the error."""
    try:
        data = orjson.loads(body.removeprefix(BOM_UTF8))
    except orjson.JSONDecodeError as exc:
        raise errors.ValidationError(f"The body is not valid JSON: {exc}.") from exc
    # PostgreSQL text cannot contain NUL. Checked here, the error can name its path.
    if b"\\u0000" in body and (path := _find_path(data, _has_nul)) is not None:
        raise errors.ValidationError.at(path, "a NUL character (\\u0000) is not allowed")
    return data


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_BRACKETS = b"{", b"["


def check_values(body: bytes, bounds: Bounds) -> None:
    """Raises ValidationError for too many values, by counting commas and brackets before the body is parsed."""
    if _count(body, b",") >= bounds.values and _count(_STRING.sub(b"", body), b",") >= bounds.values:
        raise _too_many_values(bounds)
    if _count(body, *_BRACKETS) > bounds.containers and (
        _count(_STRING.sub(b"", body), *_BRACKETS) > bounds.containers
    ):
        raise errors.ValidationError(f"The body must have at most {bounds.containers:,} objects and lists.")


def _count(body: bytes, *characters: bytes) -> int:
    return sum(map(body.count, characters))


def _too_many_values(bounds: Bounds) -> AppError:
    return errors.ValidationError(f"The body must have at most {bounds.values:,} values.")


def check_bounds(data: Any, bounds: Bounds) -> None:
    """Raises ValidationError for a document beyond these bounds. Walks it level by level."""
    level, values = [data], 1
    for _ in range(bounds.depth):
        inner: list[Any] = []
        for value in level:
            if type(value) is list:
                if len(value) > bounds.items:
                    raise _too_many(data, value, f"must have at most {bounds.items:,} items")
                inner += value
            elif type(value) is dict:
                if len(value) > bounds.members:
                    raise _too_many(data, value, f"must have at most {bounds.members:,} members")
                inner += value.values()
        values += len(inner)
        if values > bounds.values:
            raise _too_many_values(bounds)
        if not inner:
            return
        level = inner
    raise errors.ValidationError(f"The body must be nested at most {bounds.depth} levels deep.")


def _too_many(data: Any, collection: list | dict, allowed: str) -> AppError:
    path = _find_path(data, lambda value: value is collection) or ""
    return errors.ValidationError.at(path, f"{allowed}, not {len(collection):,}")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    return isinstance(value, dict) and any("\0" in key for key in value)


def _find_path(data: Any, sought: Callable[[Any], bool]) -> str | None:
    """The path of the first value that ``sought`` accepts.

    Not recursive: bodies may be nested deeper than the stack.
    """
    waiting = [("", data)]
    while waiting:
        path, value = waiting.pop()
        if sought(value):
            return path
        if isinstance(value, dict):
            waiting += reversed([(join_path(path, key), item) for key, item in value.items()])
        elif isinstance(value, list):
            waiting += reversed([(join_path(path, index), item) for index, item in enumerate(value)])
    return None
