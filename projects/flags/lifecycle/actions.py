"""Marks a flag as completed: its rollout or experiment is over, and it can be removed from the code."""

from typing import Any

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from groups.access import Caller, Permission
from projects.access import access_flag_for_update
from projects.models import LifecycleStage

COMPLETED = LifecycleStage.Stage.COMPLETED


@transactional
def complete_flag(
    project_id: str, name: str, *, status: str, status_value: str | None = None, caller: Caller
) -> None:
    """Moves the flag to the stage ``completed``, or updates the outcome of a completed flag.

    ``status`` is "kept" or "discarded"; ``status_value`` is the variant that was kept. Raises NotFound,
    NoAccess.
    """
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    outcome = {"status": status, "status_value": status_value}
    LifecycleStage.objects.update_or_create(
        flag=flag,
        stage=COMPLETED,
        defaults=outcome,
        create_defaults=outcome | {"entered_at": timezone.now()},
    )
    _record(EventType.FEATURE_COMPLETED, project_id, name, caller, after=outcome)


@transactional
def uncomplete_flag(project_id: str, name: str, *, caller: Caller) -> None:
    """Returns a completed flag to its previous stage. Other flags do not change.

    Raises NotFound, NoAccess.
    """
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE)
    deleted, _ = LifecycleStage.objects.filter(flag=flag, stage=COMPLETED).delete()
    if deleted:
        _record(EventType.FEATURE_UNCOMPLETED, project_id, name, caller)


def _record(kind: EventType, project_id: str, name: str, caller: Caller, *, after: Any = None) -> None:
    record(Event(type=kind, project=project_id, feature=name, after=after), actor=caller)
