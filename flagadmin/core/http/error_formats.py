"""The error bodies of protocols that do not use the error record."""

from collections.abc import Callable
from typing import Any

from flagadmin.core.errors import AppError

ErrorFormat = Callable[[str, AppError, str], dict[str, Any]]
"""The body of an error at a path, from the error and its id in the log."""

formats: dict[str, ErrorFormat] = {}
"""By the beginning of their paths."""


def register_error_format(prefix: str, error_format: ErrorFormat) -> None:
    """Registers the error format of an API below ``prefix``."""
    formats[prefix] = error_format
