"""Exports a project as a backup before it is deleted, and records the same audit event as any export."""

from typing import Any

from django.db import transaction

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import consistent_reads
from groups.access import Caller
from projects.access import access_project
from projects.export import project_backup


def back_up_project(project_id: str, *, caller: Caller) -> dict[str, Any]:
    """Exports the project: one document per environment, including archived flags, all read at one moment.

    Raises NotFound.
    """
    with consistent_reads():
        project = access_project(caller, project_id)
        documents = project_backup(project.pk)
    with transaction.atomic():
        record(Event(type=EventType.FEATURES_EXPORTED, project=project.pk), actor=caller)
    return documents
