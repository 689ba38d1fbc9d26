"""Reads of error records and events, checked."""

from typing import Any

from flagadmin.audit.models import AuditEvent


def refused(response: Any, status: int, name: str) -> dict[str, Any]:
    """The error record of a refusal, checked."""
    record: dict[str, Any] = response.json()
    assert (response.status_code, record["name"]) == (status, name), record
    assert response["Content-Type"] == "application/json"
    assert record["id"]
    assert record["message"]
    return record


def events(*kinds: str) -> Any:
    """The events of these kinds, oldest first."""
    return list(AuditEvent.objects.filter(type__in=kinds).order_by("id"))
