"""Builds the status of a project: its resources, activity by day, health and the lifecycle of its flags."""

from datetime import timedelta

from django.db.models import Count
from django.db.models.functions import TruncDate
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from groups.models import ApiToken
from projects.flags.lifecycle.queries import STAGE_MEMBERS, count_stages
from projects.members.queries import count_members
from projects.models import Flag, Project, Segment
from projects.projects.activity import WINDOW
from projects.projects.queries import count_flags, make_health_document

ACTIVITY_KEPT = timedelta(days=365)

# A flag leaves a stage when it enters its next one.
_DAYS_IN_STAGE = """
SELECT stage, round(avg(extract(epoch FROM left_at - entered_at)) / 86400)::int
  FROM (SELECT s.stage, s.entered_at, lead(s.entered_at) OVER (PARTITION BY s.flag_id ORDER BY array_position(
               %(stages)s, s.stage::text)) AS left_at
          FROM projects_lifecyclestage s JOIN projects_flag f ON f.id = s.flag_id
         WHERE f.project_id = %(project)s) AS stays
 WHERE left_at IS NOT NULL GROUP BY stage
"""


def make_status_document(project: Project) -> Document:
    """Ten queries."""
    counts = count_flags([project.pk])[project.pk]
    health = make_health_document(counts)
    return {
        "resources": {
            "members": count_members([project.pk]).get(project.pk, 0),
            "apiTokens": ApiToken.objects.filter(scopes__project=project).count(),
            "segments": Segment.objects.filter(project=project).count(),
        },
        "activityCountByDate": _count_events_by_day(project),
        "health": {"current": health["health"]},
        "technicalDebt": {"current": health["technicalDebt"]},
        "lifecycleSummary": _summarize_lifecycle(project),
        "staleFlags": {"total": counts["staleFeatureCount"] + counts["potentiallyStaleFeatureCount"]},
    }


def _count_events_by_day(project: Project) -> list[Document]:
    """The number of events on each day (UTC) of the last year that has any, earliest first."""
    events = AuditEvent.objects.filter(project=project.pk, created_at__gte=timezone.now() - ACTIVITY_KEPT)
    days = events.order_by().values(date=TruncDate("created_at")).annotate(count=Count("id")).order_by("date")
    return [{"date": day["date"].isoformat(), "count": day["count"]} for day in days]


def _summarize_lifecycle(project: Project) -> Document:
    flags = Flag.objects.filter(project=project)
    counts, days = count_stages(flags), _average_days_in_stage(project)
    summary: Document = {
        member: {"averageDays": days.get(stage), "currentFlags": counts[member]}
        for stage, member in STAGE_MEMBERS.items()
        if member != "archived"
    }
    recent = flags.filter(archived_at__gte=timezone.now() - WINDOW).count()
    return summary | {"archived": {"currentFlags": counts["archived"], "last30Days": recent}}


def _average_days_in_stage(project: Project) -> dict[str, int]:
    """The average days that flags of the project spent in each stage that they have left."""
    return dict(fetch_rows(_DAYS_IN_STAGE, {"project": project.pk, "stages": list(STAGE_MEMBERS)}))
