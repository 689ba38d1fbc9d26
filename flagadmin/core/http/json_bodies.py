"""Reads JSON bodies within bounds on size after decompression, number of values and depth. Knows no framework.

It also recognizes other formats sent in place of JSON, and finds names that an object has twice.
"""

import codecs
import json
import re
import zlib
from codecs import BOM_UTF8
from collections import Counter
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


def too_many_bodies() -> errors.ServiceUnavailable:
    return errors.ServiceUnavailable(
        "Too many large bodies are being received. Try again later.", headers={"Retry-After": "30"}
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The general limits of a JSON document. Fields have additional limits of their own."""

    items: int = 10_000  # of one list
    members: int = 10_000  # of one object
    values: int = 200_000  # of the whole document
    depth: int = 32
    containers: int = 200_000  # lists and objects among the values, which are slowest to create


MANY_VALUES = Bounds(values=1_000_000, containers=1_000_000)
"""For bodies with thousands of objects."""


def read_json(body: bytes, bounds: Bounds) -> Any:
    """Raises ValidationError for malformed JSON, NaN, lone surrogates, NUL characters, and beyond the bounds."""
    check_values(body, bounds)
    data = parse_json(body)
    check_bounds(data, bounds)
    return data


def parse_json(body: bytes) -> Any:
    """Skips a byte order mark, which Windows writes. Raises ValidationError with the position of the error."""
    try:
        data = orjson.loads(body.removeprefix(BOM_UTF8))
    except orjson.JSONDecodeError as exc:
        if foreign := describe_foreign(body.removeprefix(BOM_UTF8)):
            raise errors.ValidationError(f"The body is not JSON but {foreign}") from exc
        raise errors.ValidationError(f"The body is not valid JSON: {exc}.") from exc
    # PostgreSQL text cannot contain NUL. Checked here, the error can name its path.
    if b"\\u0000" in body and (path := _find_path(data, _has_nul)) is not None:
        raise errors.ValidationError.at(path, "a NUL character (\\u0000) is not allowed")
    return data


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
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


_AS_UTF8 = "Save it as UTF-8, and send it again."
_TEXTS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
    (b"{\0\0\0", "UTF-32"),
    (b"\0\0\0{", "UTF-32"),
    (b"{\0", "UTF-16"),
    (b"\0{", "UTF-16"),
)
_PACKED = (
    (b"\x1f\x8b", "gzip data. Unpack it, or send the header Content-Encoding: gzip with it."),
    (b"PK\x03\x04", "a ZIP archive. Unpack it, and send the file that is in it."),
    (b"BZh", "bzip2 data. Unpack it first."),
    (b"\xfd7zXZ\0", "xz data. Unpack it first."),
    (b"(\xb5/\xfd", "zstd data. Unpack it first."),
)
_HTML = re.compile(rb"<(!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_NAME_OR_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
MAX_NAMED = 10
BY_HAND = 4_000_000
"""The largest body, in bytes, that is searched for duplicate names in an object: programs do not write those."""


def describe_foreign(body: bytes) -> str:
    """Names the format of an unreadable body, and the remedy; "" if the format is unknown."""
    for start, name in _TEXTS:
        if body.startswith(start):
            return f"{name} text. {_AS_UTF8}"
    for start, text in _PACKED:
        if body.startswith(start):
            return text
    if _HTML.match(body.lstrip()):
        return (
            "an HTML page, such as a login page. Download it again, with a token or while you are logged in."
        )
    if body.lstrip().startswith(b"<"):
        return "XML or HTML. Send JSON."
    try:
        body.decode()
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1:,} is 0x{body[error.start]:02X}"
        return f"text in another encoding than UTF-8, perhaps Latin-1 or Windows-1252: {place}. {_AS_UTF8}"
    return ""


def list_double_names(body: bytes, document: Any) -> list[str]:
    """Notes on members that an object of the body has twice; the last one counts. Parses the body again only then."""
    if _NAME_OR_TEXT.sub(b"", body).count(b":") == _count_members(document):
        return []
    doubles: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            of = made.get("name") or made.get("featureName")
            where = f" of {of}" if isinstance(of, str) else ""
            counts = Counter(name for name, _ in pairs)
            doubles.extend(
                describe_double(f"{name}{where}", count) for name, count in counts.items() if count > 1
            )
        return made

    json.loads(body, object_pairs_hook=note)
    return shorten_doubles(doubles)


def describe_double(name: str, count: int) -> str:
    return f"{name} is there {count} times in one object: the last counts."


def shorten_doubles(doubles: list[str]) -> list[str]:
    """The first notes, followed by the number of the others."""
    more = len(doubles) - MAX_NAMED
    return [*doubles[:MAX_NAMED], f"{more:,} more members are there several times."] if more > 0 else doubles


def _count_members(document: Any) -> int:
    """Counts the members of all objects. Not recursive: bodies may be nested deeper than the stack."""
    waiting, count = [document], 0
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            count += len(value)
            waiting += value.values()
        elif type(value) is list:
            waiting += value
    return count
