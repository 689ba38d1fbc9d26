"""Errors in SCIM's format (RFC 7644, section 3.12)."""

from typing import Any

from flagadmin.core.errors import AppError, NameExists, ValidationError

PREFIX = "/scim/"
SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


class ScimRefused(ValidationError):
    """400, with SCIM's name for the reason (``scimType``)."""

    def __init__(self, message: str, scim_type: str) -> None:
        super().__init__(message)
        self.kind = scim_type


class Taken(NameExists):
    """409: another account or group has the name."""


def make_error_body(path: str, error: AppError, error_id: str) -> dict[str, Any]:
    """``error_id`` identifies it in the server's log."""
    kind = getattr(error, "kind", "uniqueness" if isinstance(error, NameExists) else "invalidValue")
    detail = error.message if error.status < 500 else f"{error.message} (id {error_id})"
    known = {"scimType": kind} if error.status in (400, 409) else {}
    return {"schemas": [SCHEMA], "status": str(error.status), **known, "detail": detail}
