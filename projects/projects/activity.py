"""Reads project activity: last change and last usage report, onboarding status, and statistics.

Statistics cover the last thirty days and the thirty days before.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Avg, Count, F, Q
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import FEW, fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.members.queries import count_new_members
from projects.models import Flag, LifecycleStage, Project

WINDOW = timedelta(days=30)
EVENTS_COUNTED = 10_000
"""Only the latest events are counted: a project's log may be long, and the overview is requested often."""

_USED = (LifecycleStage.Stage.PRE_LIVE.value, LifecycleStage.Stage.LIVE.value)
_LATEST = """
SELECT p.id, (SELECT created_at FROM audit_auditevent WHERE project = p.id ORDER BY created_at DESC, id DESC LIMIT 1),
       (SELECT max(last_seen_at) FROM projects_projectapplication WHERE project_id = p.id),
       (SELECT name FROM projects_flag WHERE project_id = p.id AND archived_at IS NULL ORDER BY created_at, id LIMIT 1),
       EXISTS (SELECT FROM projects_lifecyclestage s JOIN projects_flag f ON f.id = s.flag_id
                WHERE f.project_id = p.id AND s.stage = ANY(%(used)s))
  FROM projects_project p WHERE p.id = ANY(%(projects)s)
"""


def read_latest_activity(ids: Sequence[str]) -> dict[str, Document]:
    """The last change, last usage report and onboarding status of each project. One query.

    Every id has an entry, even that of a project deleted concurrently.
    """
    documents = {
        pk: _make_latest(*values)
        for pk, *values in fetch_rows(
            _LATEST, {"projects": list(ids), "used": list(_USED)}, prepared=len(ids) <= FEW
        )
    }
    return {pk: documents.get(pk) or _make_latest(None, None, None, False) for pk in ids}


def _make_latest(
    changed: datetime | None, reported: datetime | None, first_flag: str | None, in_use: bool
) -> Document:
    return {
        "lastUpdatedAt": iso(changed),
        "lastReportedFlagUsage": iso(reported),
        "onboardingStatus": _make_onboarding(first_flag, in_use=in_use),
    }


def _make_onboarding(first_flag: str | None, *, in_use: bool) -> Document:
    if in_use:
        return {"status": "onboarded"}
    if first_flag is not None:
        return {"status": "first-flag-created", "feature": first_flag}
    return {"status": "onboarding-started"}


def read_stats(project: Project) -> Document:
    """Statistics for the last thirty days (current window) and the thirty days before (past window).

    Four queries.
    """
    now = timezone.now()
    current, past = now - WINDOW, now - 2 * WINDOW
    return (
        {"avgTimeToProdCurrentWindow": _average_days_to_production(project, current)}
        | _count_flag_changes(project, current, past)
        | _count_activity(project, current, past)
        | {"projectMembersAddedCurrentWindow": count_new_members(project, current)}
    )


def _count_flag_changes(project: Project, current: datetime, past: datetime) -> Document:
    return Flag.objects.filter(project=project).aggregate(
        createdCurrentWindow=Count("id", filter=Q(created_at__gte=current)),
        createdPastWindow=Count("id", filter=Q(created_at__gte=past, created_at__lt=current)),
        archivedCurrentWindow=Count("id", filter=Q(archived_at__gte=current)),
        archivedPastWindow=Count("id", filter=Q(archived_at__gte=past, archived_at__lt=current)),
    )


def _count_activity(project: Project, current: datetime, past: datetime) -> Document:
    latest = AuditEvent.objects.filter(project=project.pk).newest_first()[:EVENTS_COUNTED]
    return latest.aggregate(
        projectActivityCurrentWindow=Count("id", filter=Q(created_at__gte=current)),
        projectActivityPastWindow=Count("id", filter=Q(created_at__gte=past, created_at__lt=current)),
    )


def _average_days_to_production(project: Project, since: datetime) -> float:
    """Average days from creation to first use in production, for flags that went live after ``since``."""
    live = LifecycleStage.objects.filter(
        flag__project=project, stage=LifecycleStage.Stage.LIVE, entered_at__gte=since
    )
    average = live.aggregate(average=Avg(F("entered_at") - F("flag__created_at")))["average"]
    return round(average / timedelta(days=1), 1) if average else 0
