"""Finds scheduled requests that change the same as the changes of another request."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import QuerySet

from releases.changes import KINDS
from releases.models import Change, ChangeRequest

ARCHIVE = "archiveFeature"


def find_schedule_conflicts(
    project: str, environment: str, changes: Sequence[Change]
) -> list[list[dict[str, Any]]]:
    """Finds for each change the other scheduled requests of the environment, ``{id, title?}``, that change the same.

    Archiving a flag changes all of it. One query.
    """
    scheduled = defaultdict(list)
    for other in _find_scheduled(project, environment, {change.feature for change in changes}):
        scheduled[other.feature].append(other)
    return [
        [
            {"id": each.pk, **({"title": each.title} if each.title else {})}
            for each in dict.fromkeys(
                other.request for other in scheduled[change.feature] if _meet(change, other)
            )
        ]
        for change in changes
    ]


def _find_scheduled(project: str, environment: str, flags: Collection[str]) -> QuerySet[Change]:
    scheduled = Change.objects.filter(
        request__project=project,
        request__environment=environment,
        request__state=ChangeRequest.State.SCHEDULED,
        feature__in=flags,
    )
    return scheduled.select_related("request").order_by("request", "id")


def _meet(change: Change, other: Change) -> bool:
    if other.request_id == change.request_id:
        return False
    subject, other_subject = (KINDS[each.action].find_subject(each.payload) for each in (change, other))
    return ARCHIVE in (change.action, other.action) or subject == other_subject != ""
