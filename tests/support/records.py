"""Reads error records and audit events, and checks their structure."""

from typing import Any

from flagadmin.core.audit.models import AuditEvent


def refused(response: Any, status: int, name: str) -> dict[str, Any]:
    """Checks the status and error record of a response, and returns the record."""
    record: dict[str, Any] = response.json()
    assert (response.status_code, record["name"]) == (status, name), record
    assert response["Content-Type"] == "application/json"
    assert record["id"]
    assert record["message"]
    return record


def events(*kinds: str) -> Any:
    """The audit events of these types, oldest first."""
    return list(AuditEvent.objects.filter(type__in=kinds).order_by("id"))
