"""What goes on in projects: last changes and reports, how far they are set up, and counts of the last weeks."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from flagadmin.audit.models import AuditEvent
from flagadmin.http.timestamps import iso
from groups.models import Grant
from projects.models import Flag, LifecycleStage, Project, ProjectApplication

Document = dict[str, Any]
WINDOW = timedelta(days=30)
EVENTS_COUNTED = 10_000
"""Of the events of a project the latest are counted: its log may be long, and the overview is asked for often."""

_USED = (LifecycleStage.Stage.PRE_LIVE, LifecycleStage.Stage.LIVE)
_LAST_EVENT = AuditEvent.objects.filter(project=OuterRef("pk")).order_by("-id").values("created_at")[:1]
_LAST_REPORT = (
    ProjectApplication.objects.filter(project_id=OuterRef("pk"))
    .order_by()
    .values("project_id")
    .annotate(last=Max("last_seen_at"))
    .values("last")
)
_FIRST_FLAG = Flag.objects.filter(project=OuterRef("pk"), archived_at=None).order_by("created_at", "id")
_IN_USE = Exists(LifecycleStage.objects.filter(flag__project=OuterRef("pk"), stage__in=_USED))


def latest_documents(ids: Sequence[str]) -> dict[str, Document]:
    """When each of these projects was last changed and reported on, and how far it is set up. One query.

    Every id is there, that of a project just deleted too.
    """
    rows = Project.objects.filter(pk__in=ids).values_list(
        "pk",
        Subquery(_LAST_EVENT),
        Subquery(_LAST_REPORT),
        Subquery(_FIRST_FLAG.values("name")[:1]),
        _IN_USE,
    )
    found = {pk: _latest(*values) for pk, *values in rows}
    return {pk: found.get(pk) or _latest(None, None, None, False) for pk in ids}


def _latest(
    changed: datetime | None, reported: datetime | None, first_flag: str | None, in_use: bool
) -> Document:
    return {
        "lastUpdatedAt": iso(changed),
        "lastReportedFlagUsage": iso(reported),
        "onboardingStatus": _onboarding(first_flag, in_use=in_use),
    }


def _onboarding(first_flag: str | None, *, in_use: bool) -> Document:
    if in_use:
        return {"status": "onboarded"}
    if first_flag is not None:
        return {"status": "first-flag-created", "feature": first_flag}
    return {"status": "onboarding-started"}


def stats_document(project: Project) -> Document:
    """Counts of the current window, the last thirty days, and of the one before. Four queries."""
    now = timezone.now()
    current, past = now - WINDOW, now - 2 * WINDOW
    members = Grant.objects.filter(project=project, created_at__gte=current)
    return (
        {"avgTimeToProdCurrentWindow": _days_to_production(project, current)}
        | _flag_changes(project, current, past)
        | _activity(project, current, past)
        | {"projectMembersAddedCurrentWindow": members.count()}
    )


def _flag_changes(project: Project, current: datetime, past: datetime) -> Document:
    return Flag.objects.filter(project=project).aggregate(
        createdCurrentWindow=Count("id", filter=Q(created_at__gte=current)),
        createdPastWindow=Count("id", filter=Q(created_at__gte=past, created_at__lt=current)),
        archivedCurrentWindow=Count("id", filter=Q(archived_at__gte=current)),
        archivedPastWindow=Count("id", filter=Q(archived_at__gte=past, archived_at__lt=current)),
    )


def _activity(project: Project, current: datetime, past: datetime) -> Document:
    latest = AuditEvent.objects.filter(project=project.pk).order_by("-id")[:EVENTS_COUNTED]
    return latest.aggregate(
        projectActivityCurrentWindow=Count("id", filter=Q(created_at__gte=current)),
        projectActivityPastWindow=Count("id", filter=Q(created_at__gte=past, created_at__lt=current)),
    )


def _days_to_production(project: Project, since: datetime) -> float:
    """From the creation of flags to their first use in production, of those that came that far since then."""
    live = LifecycleStage.objects.filter(
        flag__project=project, stage=LifecycleStage.Stage.LIVE, entered_at__gte=since
    )
    average = live.aggregate(average=Avg(F("entered_at") - F("flag__created_at")))["average"]
    return round(average / timedelta(days=1), 1) if average else 0
