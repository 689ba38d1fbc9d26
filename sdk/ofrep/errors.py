"""Errors as OFREP has them: ``{key?, errorCode, errorDetails}``."""

import re
from typing import Any, ClassVar

from flagadmin.core.errors import AppError, NotFound, ValidationError

PREFIX = "/ofrep/"
_SINGLE = re.compile(r"/ofrep/v1/evaluate/flags/(.+)", re.DOTALL)


class InvalidContext(ValidationError):
    code: ClassVar[str] = "INVALID_CONTEXT"


class TargetingKeyMissing(ValidationError):
    code: ClassVar[str] = "TARGETING_KEY_MISSING"


class FlagNotFound(NotFound):
    code: ClassVar[str] = "FLAG_NOT_FOUND"


def get_code(error: AppError) -> str:
    """The OpenFeature error code. A body or a payload that cannot be read is PARSE_ERROR."""
    code: str = getattr(error, "code", "PARSE_ERROR" if isinstance(error, ValidationError) else "GENERAL")
    return code


def describe_failure(error: AppError, key: str | None = None) -> dict[str, Any]:
    """OFREP's evaluationFailure; without ``key`` that of all flags, or of a request that is about none."""
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
