"""What tests look at again and again: error records, events, strategies of a flag."""

from typing import Any

from django.utils import timezone

from flagadmin.audit.models import AuditEvent
from projects.models import Flag, Strategy


def refused(response: Any, status: int, name: str) -> dict[str, Any]:
    """The error record of a refusal, checked."""
    record: dict[str, Any] = response.json()
    assert (response.status_code, record["name"]) == (status, name), record
    return record


def events(*kinds: str) -> Any:
    """The events of these kinds, oldest first."""
    return list(AuditEvent.objects.filter(type__in=kinds).order_by("id"))


def make_flag(project: str, name: str, *, archived: bool = False, **fields: Any) -> Flag:
    now = timezone.now()
    return Flag.objects.create(
        project_id=project, name=name, created_at=now, archived_at=now if archived else None, **fields
    )


def make_strategy(flag: Flag, **fields: Any) -> Strategy:
    fields = {"name": "flexibleRollout", "environment_id": "development", **fields}
    return Strategy.objects.create(flag=flag, **fields)
