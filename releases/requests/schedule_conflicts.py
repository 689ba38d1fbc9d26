"""Finds scheduled requests that change the same as the changes of another request."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from releases.changes import KINDS
from releases.models import Change, ChangeRequest

ARCHIVE = "archiveFeature"


def find_schedule_conflicts(request: ChangeRequest, changes: Sequence[Change]) -> list[list[Any]]:
    """Finds for each change the other scheduled requests of the environment, ``{id, title?}``, that change the same.

    Archiving a flag changes all of it. One query.
    """
    scheduled = defaultdict(list)
    for other in _scheduled_beside(request, changes):
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


def _scheduled_beside(request: ChangeRequest, changes: Sequence[Change]) -> Any:
    others = Change.objects.filter(
        request__project=request.project_id,
        request__environment=request.environment_id,
        request__state=ChangeRequest.State.SCHEDULED,
        feature__in={change.feature for change in changes},
    )
    return others.exclude(request=request).select_related("request").order_by("request", "id")


def _meet(change: Change, other: Change) -> bool:
    subject, other_subject = (KINDS[each.action].find_subject(each.payload) for each in (change, other))
    return ARCHIVE in (change.action, other.action) or subject == other_subject != ""
