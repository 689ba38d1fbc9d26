"""Reads an OFREP request: ``{"context": {"targetingKey": "42", "country": "NO"}}``. Every part may be missing."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.errors import Problem, ValidationError
from playground.context_body import describe_kind, read_context
from playground.engine.context import TOP_LEVEL
from sdk.ofrep.errors import InvalidContext

KEY = "targetingKey"


def read_body(body: Any) -> dict[str, Any]:
    """The fields of the context. Raises ValidationError (PARSE_ERROR) and InvalidContext."""
    if not isinstance(body, Mapping) and body is not None:
        raise ValidationError(f"The body must be an object, not {describe_kind(body)}.")
    fields = (body or {}).get("context")
    if fields is None:
        fields = {}
    if not isinstance(fields, dict):
        raise InvalidContext(f"The context must be an object, not {describe_kind(fields)}.")
    problems: list[Problem] = []
    context = read_context({"context": _select_context_fields(fields)}, problems)
    if problems:
        raise InvalidContext.of(problems)
    return context


def _select_context_fields(members: dict[str, Any]) -> dict[str, Any]:
    """The members that are context fields, with the targeting key as userId.

    OpenFeature allows objects and lists in a context, for uses of the application's own; no condition can name them.
    """
    fields = {
        name: value
        for name, value in members.items()
        if name in TOP_LEVEL or not isinstance(value, dict | list)
        if name not in (KEY, "properties")
    }
    properties = members.get("properties")
    if isinstance(properties, dict):
        fields["properties"] = {n: v for n, v in properties.items() if not isinstance(v, dict | list)}
    key = members.get(KEY)
    if isinstance(key, dict | list):
        raise InvalidContext.at(f"context.{KEY}", f"must be a string, not {describe_kind(key)}")
    return fields if key is None or key == "" else fields | {"userId": key}
