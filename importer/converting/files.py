"""Reads files of other products: JSON, YAML or TOML, with the bounds of an import."""

import re
import tomllib
from collections import Counter
from datetime import date, datetime, time
from typing import Any, TypeVar

import yaml
from django.conf import settings
from pydantic import TypeAdapter, ValidationError
from yaml.composer import Composer
from yaml.constructor import ConstructorError

from flagadmin.client.files import TooLarge, check_yaml
from flagadmin.core import errors
from flagadmin.core.errors import MAX_DETAILS, Problem
from flagadmin.core.http.json_bodies import (
    BY_HAND,
    Bounds,
    check_bounds,
    check_values,
    describe_double,
    describe_foreign,
    list_double_names,
    parse_json,
    shorten_doubles,
    too_large,
)
from importer.body.schema_errors import format_json_path, make_validation_error, to_short_json

DEPTH = 100
BOUNDS = Bounds(items=200_000, members=200_000, values=5_000_000, depth=DEPTH, containers=2_000_000)
MAX_TEXT = 16_000_000  # bytes of YAML and TOML
MAX_VALUES = 500_000
"""The maximum number of values in YAML and TOML."""
TIMES_JSON = 100
"""How much longer YAML and TOML take to read than JSON of the same size."""
ENDINGS = {".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
T = TypeVar("T")
MAX_DIGITS = 400
"""The maximum length of a number in YAML: the cost of sexagesimal numbers is quadratic."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEPTH}}}")


def read_document(content: bytes, file_name: str = "") -> Any:
    """``read_with_notes`` without the notes."""
    return read_with_notes(content, file_name)[0]


def read_with_notes(content: bytes, file_name: str = "") -> tuple[Any, list[str]]:
    """The document in a file, and notes on members that an object has twice.

    The format follows from the file's ending or, without one, from the content. Each format is measured before it is
    built. Raises ValidationError with the position of the error, and PayloadTooLarge.
    """
    if len(content) > settings.IMPORT_BODY_LIMIT:
        raise too_large(settings.IMPORT_BODY_LIMIT)
    content = content.removeprefix(b"\xef\xbb\xbf")
    if foreign := describe_foreign(content):
        raise errors.ValidationError(f"The file is {foreign}")
    form = next((form for ending, form in ENDINGS.items() if file_name.lower().endswith(ending)), "")
    document, notes = _READERS[form or _guess_form(content)](content)
    check_bounds(document, BOUNDS)
    return document, notes


def weigh(content: bytes) -> int:
    """The number of bytes of JSON that take equally long to read."""
    return len(content) * (1 if content.lstrip()[:1] in (b"{", b"[") else TIMES_JSON)


def _guess_form(content: bytes) -> str:
    """JSON begins with a brace, or a bracket, as TOML can; everything else is YAML."""
    if content.lstrip()[:1] == b"{":
        return "JSON"
    try:
        _load_toml(content)
    except (tomllib.TOMLDecodeError, RecursionError, errors.AppError):
        return "JSON" if content.lstrip()[:1] == b"[" else "YAML"
    return "TOML" if content.strip() else "JSON"


def _load_toml(content: bytes) -> dict[str, Any]:
    """Refuses many values, and keys with many parts, each of which costs `tomllib` as much as everything before."""
    text = _decode_bounded(content)
    if content.count(b"\n") + content.count(b",") >= MAX_VALUES:
        raise errors.ValidationError(f"The file must have at most {MAX_VALUES:,} lines and commas.")
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key has more than {DEPTH} parts")
    return tomllib.loads(text)


def _read_toml(content: bytes) -> tuple[Any, list[str]]:
    """TOML treats a duplicate key as an error."""
    try:
        return _convert_to_texts(_load_toml(content)), []
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise errors.ValidationError(f"The file is not valid TOML: {error}.") from None


def _read_json(content: bytes) -> tuple[Any, list[str]]:
    check_values(content, BOUNDS)
    document = parse_json(content)
    return document, list_double_names(content, document) if len(content) <= BY_HAND else []


class _Loader(Composer, yaml.CSafeLoader):
    """YAML 1.2 as Go reads it: only true and false are booleans, and times are text.

    Composed in Python, whose recursion ends with an error: C's ends the process for a file of 50 kB.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)
        self.doubles: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Notes duplicate keys, before those of merged mappings (``<<``) are added."""
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name, count in Counter(key.value for key in keys).items():
            if count > 1:
                line = next(key for key in keys if key.value == name).start_mark.line + 1
                self.doubles.append(f"Line {line}: {describe_double(name, count)}")
        return super().construct_mapping(node, deep)

    yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag.rpartition(":")[2] not in ("timestamp", "bool")
        ]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    if len(node.value) > MAX_DIGITS:
        raise ConstructorError(None, None, f"a number has more than {MAX_DIGITS} digits", node.start_mark)
    kind = node.tag.rpartition(":")[2]
    return loader.construct_yaml_int(node) if kind == "int" else loader.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _construct_number)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("true|True|TRUE|false|False|FALSE"), list("tTfF")
)


def _read_yaml(content: bytes) -> tuple[Any, list[str]]:
    text = _decode_bounded(content)
    loader = _Loader(text)
    try:
        check_yaml(text, values=MAX_VALUES, depth=DEPTH)
        return _convert_to_texts(loader.get_single_data()), shorten_doubles(loader.doubles)
    except TooLarge as error:
        raise errors.ValidationError.at(f"line {error.line}", str(error)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise errors.ValidationError(f"The file is not valid YAML: {' '.join(str(error).split())}.") from None
    finally:
        loader.dispose()


def _convert_to_texts(value: Any) -> Any:
    """The document with times as text and names as strings, as in JSON."""
    if isinstance(value, dict):
        return {
            _check_text(key) if isinstance(key, str) else format_text(key): _convert_to_texts(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_convert_to_texts(item) for item in value]
    if isinstance(value, str):
        return _check_text(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if value is None or isinstance(value, int | float):
        return value
    raise errors.ValidationError(f"The file has a value that JSON cannot have ({type(value).__name__}).")


def _check_text(text: str) -> str:
    """Raises ValidationError for text that PostgreSQL cannot store, like `parse_json`."""
    if "\0" in text:
        raise errors.ValidationError("A NUL character (\\0) is not allowed.")
    return text


def format_text(value: Any) -> str:
    """The text that an SDK sends for a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _decode_bounded(content: bytes) -> str:
    if len(content) > MAX_TEXT:
        raise too_large(MAX_TEXT)
    return content.decode()


_READERS = {"JSON": _read_json, "YAML": _read_yaml, "TOML": _read_toml}


def validate(adapter: TypeAdapter[T], raw: Any, path: str = "") -> T:
    """The document in the types of the adapter. Raises ValidationError with every error and its JSON path."""
    try:
        return adapter.validate_python(raw, strict=True)
    except ValidationError as invalid:
        faults = invalid.errors(include_url=False)[:MAX_DETAILS]
        problems = [Problem(_join_path(path, error["loc"]), _make_message(error)) for error in faults]
        raise make_validation_error(problems, invalid.error_count()) from None


def _join_path(path: str, location: tuple[int | str, ...]) -> str:
    inner = format_json_path(tuple(step for step in location if step != "[key]"))
    return f"{path}{'' if inner.startswith('[') or not path or not inner else '.'}{inner}"


def _make_message(error: Any) -> str:
    if error["type"] == "missing":
        return "is required"
    expected = {
        "list_type": "a list",
        "dict_type": "an object",
        "typed_dict_type": "an object",
        "string_type": "a string",
        "bool_type": "true or false",
        "literal_error": error.get("ctx", {}).get("expected", ""),
    }.get(error["type"])
    if expected is None:
        return f"is not valid: {error['msg']}"
    return f"must be {expected}, not {to_short_json(error['input'])}"
