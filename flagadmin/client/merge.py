"""Writes stored documents into files. Unchanged parts of a file keep their form and comments."""

import io
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml
from yaml12 import format_yaml

from flagadmin.client.files import Document, load_with_comments, make_round_trip_parser, read_text

_MARK = f"#{uuid4().hex}:"
"""Marks a text to be quoted. It begins like a comment, which forces the quotes."""


def is_ambiguous(text: str) -> bool:
    """Whether YAML 1.1 (https://yaml.org/type/) reads the plain text as a boolean, number, time, null or merge."""
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], ())
    return any(pattern.match(text) for _, pattern in resolvers) or text in ("y", "Y", "n", "N")


def format_document(document: Any) -> str:
    return format_yaml(_convert(document, lambda text: _MARK + text)).replace(f'"{_MARK}', '"')


def quote_for_comments(value: Any) -> Any:
    """Quotes the texts for the parser that keeps comments."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString  # slow to import and rarely needed

    return _convert(value, DoubleQuotedScalarString)


def _convert(value: Any, quote: Any) -> Any:
    if isinstance(value, str):
        return quote(value) if is_ambiguous(value) else value
    if isinstance(value, Mapping):
        return {_convert(key, quote): _convert(member, quote) for key, member in value.items()}
    if isinstance(value, list):
        return [_convert(item, quote) for item in value]
    return value


KEPT_IF_FALSE = ("enabled",)
SCHEMAS = ".schemas"


def simplify(value: Any) -> Any:
    """Reduces a value to its meaning, regardless of spelling: numbers become texts, and empty members disappear."""
    if isinstance(value, Mapping):
        members = {key: simplify(member) for key, member in value.items()}
        return {
            key: member
            for key, member in members.items()
            if member not in ("", [], {}) and (member != "false" or key in KEPT_IF_FALSE)
        }
    if isinstance(value, list):
        return [simplify(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def is_same(first: Any, second: Any) -> bool:
    return first == second or simplify(first) == simplify(second)


def write_new(path: Path, document: Document, kind: str) -> None:
    if path.suffix == ".json":
        text = _format_json(document)
    else:
        above = "../" * (2 if kind == "flag" else 0 if kind == "flagadmin" else 1)
        schema = f"# yaml-language-server: $schema={above}{SCHEMAS}/{kind}.json\n"
        text = f"{schema}{format_document(document)}\n"
    write(path, text)


def rewrite(path: Path, document: Document) -> None:
    """Changes the parts of the file that differ from the document."""
    if path.suffix == ".json":
        write(path, _format_json(document))
        return
    node = load_with_comments(path, read_text(path))
    _merge(node, document)
    text = io.StringIO()
    make_round_trip_parser().dump(node, text)
    write(path, text.getvalue())


def write(path: Path, text: str) -> None:
    """Writes all or nothing: an interruption leaves the file unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=path.suffix)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _format_json(document: Document) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _merge(node: Any, document: Mapping[str, Any]) -> None:
    for key in [key for key in node if key not in document and simplify({key: node[key]})]:
        _delete(node, key)
    for key, value in document.items():
        if key in node and is_same(node[key], value):
            continue
        if isinstance(node.get(key), dict) and isinstance(value, Mapping):
            _merge(node[key], value)
        elif isinstance(node.get(key), list) and isinstance(value, list):
            _merge_list(node[key], value)
        else:
            node[key] = quote_for_comments(value)


def _delete(node: Any, key: str) -> None:
    """Deletes a key. The parser attaches a comment above the next key to this one, so the comment moves."""
    keys = list(node)
    index = keys.index(key)
    tokens = node.ca.items.pop(key, None)
    del node[key]
    below = tokens[2] if tokens and len(tokens) > 2 else None
    if below is None or "\n" not in below.value.rstrip("\n") or not index:
        return
    lines = below.value.partition("\n")[2]
    above = node.ca.items.setdefault(keys[index - 1], [None, None, None, None])
    if above[2] is None:
        below.value = "\n" + lines
        above[2] = below
    else:
        above[2].value = above[2].value.rstrip("\n") + "\n" + lines


def _merge_list(node: Any, values: list[Any]) -> None:
    """Items that stay keep their comments; new items take the places of removed ones."""
    left = list(node)
    merged = []
    for value in values:
        old = next((item for item in left if is_same(item, value)), None)
        if old is None:
            old = next((item for item in left if _is_about_the_same(item, value)), None)
        if old is None:
            merged.append(quote_for_comments(value))
            continue
        left.remove(old)
        if isinstance(old, dict) and not is_same(old, value):
            _merge(old, value)
        merged.append(old)
    if len(merged) == len(node) and all(new is old for new, old in zip(merged, node, strict=True)):
        return
    node[:] = merged


def _is_about_the_same(item: Any, value: Any) -> bool:
    if not (isinstance(item, dict) and isinstance(value, Mapping)):
        return False
    return any(
        item.get(key) == value.get(key) is not None
        for key in ("name", "contextName", "feature", "url", "value")
    )
