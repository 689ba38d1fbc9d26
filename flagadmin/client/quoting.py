"""Quotes texts that YAML 1.1 readers would misread: ``no``, ``on``, ``1:30``, ``2024-01-01``.

Files are written as YAML 1.2, which reads them as texts, but editors and other programs often use YAML 1.1.
"""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import yaml
from yaml12 import format_yaml

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
