"""Reads an OFREP request (``{"context": {"targetingKey": "42", "country": "NO"}}``), with every part optional.

Errors have OFREP's form: ``{key?, errorCode, errorDetails}``.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from flagadmin.core.errors import AppError, NotFound, Problem, ValidationError
from playground.context_body import describe_kind, read_context
from playground.engine.context import TOP_LEVEL

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

    OpenFeature allows objects and lists in a context for the application's own use; no condition can refer to them.
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


PREFIX = "/ofrep/"
_SINGLE = re.compile(r"/ofrep/v1/evaluate/flags/(.+)", re.DOTALL)


class InvalidContext(ValidationError):
    code: ClassVar[str] = "INVALID_CONTEXT"


class TargetingKeyMissing(ValidationError):
    code: ClassVar[str] = "TARGETING_KEY_MISSING"


class FlagNotFound(NotFound):
    code: ClassVar[str] = "FLAG_NOT_FOUND"


def get_code(error: AppError) -> str:
    """The OpenFeature error code; PARSE_ERROR for an unreadable body or payload."""
    code: str = getattr(error, "code", "PARSE_ERROR" if isinstance(error, ValidationError) else "GENERAL")
    return code


def describe_failure(error: AppError, key: str | None = None) -> dict[str, Any]:
    """OFREP's evaluationFailure; without ``key`` for all flags, or for a request without a flag."""
    problems = list(map(str, error.details))
    details = "; ".join(problems) if len(problems) > 1 else error.message
    named = {} if key is None else {"key": key}
    return {**named, "errorCode": get_code(error), "errorDetails": details}


def make_error_body(path: str, error: AppError, error_id: str) -> dict[str, Any]:
    """The body of a failed request; ``error_id`` finds an unexpected error in the server's log."""
    single = _SINGLE.fullmatch(path)
    body = describe_failure(error, single[1] if single else None)
    if error.status >= 500:
        body["errorDetails"] += f" (id {error_id})"
    return body
