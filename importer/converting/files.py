"""Reads files of other products: JSON, YAML or TOML, bounded as an import is."""

import re
import tomllib
from collections.abc import Iterable
from datetime import date, datetime, time
from typing import Any, TypeVar

import yaml
from django.conf import settings
from pydantic import TypeAdapter, ValidationError
from yaml.composer import Composer
from yaml.constructor import ConstructorError

from flagadmin.core import errors
from flagadmin.core.errors import MAX_DETAILS, Problem
from flagadmin.core.http.json_bodies import Bounds, check_bounds, parse_json, too_large
from importer.body.schema_errors import format_json_path, make_validation_error, to_short_json

DEPTH = 100
BOUNDS = Bounds(items=200_000, members=200_000, values=5_000_000, depth=DEPTH)
ENDINGS = {".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}
T = TypeVar("T")
MAX_DIGITS = 400
"""The maximum length of a number in YAML: those to base 60 cost as much as it squared."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEPTH}}}")


def read_document(content: bytes, file_name: str = "") -> Any:
    """The document in a file. Its format is that of the file's ending or, without one, what it can be read as.

    Raises ValidationError with the place of the fault, and PayloadTooLarge.
    """
    if len(content) > settings.IMPORT_BODY_LIMIT:
        raise too_large(settings.IMPORT_BODY_LIMIT)
    content = content.removeprefix(b"\xef\xbb\xbf")
    form = next((form for ending, form in ENDINGS.items() if file_name.lower().endswith(ending)), "")
    document = _READERS[form or _guess_form(content)](content)
    check_bounds(document, BOUNDS)
    return document


def _guess_form(content: bytes) -> str:
    """JSON begins with a brace, or a bracket, as TOML can; what is neither is YAML."""
    if content.lstrip()[:1] == b"{":
        return "JSON"
    try:
        _load_toml(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return "JSON" if content.lstrip()[:1] == b"[" else "YAML"
    return "TOML" if content.strip() else "JSON"


def _load_toml(text: str) -> dict[str, Any]:
    """Refuses keys of many parts, each of which costs `tomllib` as much as all before it."""
    if _LONG_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key has more than {DEPTH} parts")
    return tomllib.loads(text)


def _read_toml(content: bytes) -> Any:
    try:
        return _convert_to_texts(_load_toml(_decode(content)))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise errors.ValidationError(f"The file is not valid TOML: {error}.") from None


class _Loader(Composer, yaml.CSafeLoader):
    """YAML 1.2 as Go reads it: only true and false are booleans, and times are text.

    Composed by Python, whose recursion ends with an error: that of C ends the process for a file of 50 kB.
    """

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)

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


def _read_yaml(content: bytes) -> Any:
    loader = _Loader(_decode(content))
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node)
        return _convert_to_texts(loader.construct_document(node))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise errors.ValidationError(f"The file is not valid YAML: {' '.join(str(error).split())}.") from None
    finally:
        loader.dispose()


def _check_size(root: yaml.Node) -> None:
    """Refuses a document that would be too large once its aliases are replaced, or that contains itself."""
    sizes: dict[int, int] = {}
    pending: list[tuple[yaml.Node, bool]] = [(root, False)]
    entered = set[int]()
    while pending:
        node, is_done = pending.pop()
        key = id(node)
        if is_done:
            sizes[key] = 1 + sum(sizes[id(child)] for child in _list_children(node))
            entered.discard(key)
            if sizes[key] > BOUNDS.values:
                raise errors.ValidationError(f"The file must have at most {BOUNDS.values:,} values.")
        elif key not in sizes:
            if key in entered:
                raise errors.ValidationError(f"The file contains itself (line {node.start_mark.line + 1}).")
            entered.add(key)
            pending.append((node, True))
            pending += ((child, False) for child in _list_children(node))


def _list_children(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return (child for pair in node.value for child in pair)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


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
    """Raises ValidationError for what PostgreSQL cannot store, as `parse_json` does."""
    if "\0" in text:
        raise errors.ValidationError("A NUL character (\\0) is not allowed.")
    return text


def format_text(value: Any) -> str:
    """A value as the text that an SDK sends of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise errors.ValidationError("The file must be UTF-8 text.") from None


_READERS = {"JSON": parse_json, "YAML": _read_yaml, "TOML": _read_toml}


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
