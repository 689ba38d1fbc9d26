"""Reads projects and environments into the documents used by the API and by audit events."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Value
from django.db.models.functions import Concat, TruncDate
from django.utils import timezone

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.lookups import find_best_matches
from flagadmin.core.db.statements import FEW, fetch_rows
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import ApiToken
from groups.permissions import BuiltIn, Permission
from projects.access import list_projects_with
from projects.flags.lists.conditions import OVERDUE
from projects.flags.queries import STAGE_MEMBERS, count_stages
from projects.members.queries import count_members
from projects.models import Environment, FavoriteProject, Flag, Project, ProjectEnvironment, Segment
from projects.projects.activity import WINDOW, read_latest_activity, read_stats
from projects.projects.settings import SETTINGS

FLAG_COUNTS = (
    "featureCount",
    "archivedFeatureCount",
    "staleFeatureCount",
    "potentiallyStaleFeatureCount",
)
_FLAG_COUNTS = f"""
SELECT f.project_id, count(*) FILTER (WHERE f.archived_at IS NULL),
       count(*) FILTER (WHERE f.archived_at IS NOT NULL),
       count(*) FILTER (WHERE f.archived_at IS NULL AND f.stale),
       count(*) FILTER (WHERE f.archived_at IS NULL AND {OVERDUE})
  FROM projects_flag f LEFT JOIN projects_flagtype t ON t.id = f.type
 WHERE f.project_id = ANY(%(projects)s) GROUP BY f.project_id
"""  # noqa: S608 - constants
_OWNERS = """
SELECT o.project_id, g.name, coalesce(nullif(u.name, ''), u.username), u.email
  FROM groups_grant o
  LEFT JOIN groups_user u ON u.id = o.user_id
  LEFT JOIN groups_group g ON g.id = o.group_id
 WHERE o.project_id = ANY(%(projects)s) AND o.role_id = %(role)s ORDER BY o.id
"""

_FAVORITES = "SELECT project_id FROM projects_favouriteproject WHERE user_id = %s"


def make_settings_document(project: Project) -> Document:
    """The project's own fields, as in its audit events and in the response to its creation."""
    document: Document = {"id": project.pk}
    for setting in SETTINGS:
        value = getattr(project, setting.field)
        parent, _, member = setting.member.rpartition(".")
        if parent:
            document.setdefault(parent, {})[member] = value or None
        else:
            document[member] = value
    return document | {"createdAt": iso(project.created_at), "archivedAt": iso(project.archived_at)}


def list_project_summaries(projects: Sequence[Project], *, caller: Caller) -> list[Document]:
    """Projects as shown in lists, with their counts. Five queries."""
    ids = [project.pk for project in projects]
    counts, members, latest = count_flags(ids), count_members(ids), read_latest_activity(ids)
    owners, favorites = read_owners(ids), _read_favorites(caller)
    return [
        {
            "id": project.pk,
            "name": project.name,
            "description": project.description,
            "mode": project.mode,
            "defaultStickiness": project.default_stickiness,
            "memberCount": members.get(project.pk, 0),
            "favorite": project.pk in favorites,
            "owners": owners.get(project.pk, [{"ownerType": "system"}]),
            "createdAt": iso(project.created_at),
            "archivedAt": iso(project.archived_at),
        }
        | make_health_document(counts[project.pk])
        | counts[project.pk]
        | latest[project.pk]
        for project in projects
    ]


def read_project_overview(project: Project, *, caller: Caller) -> Document:
    """One project with its settings, environments and counts. Twelve queries."""
    counts = count_flags([project.pk])[project.pk]
    latest = read_latest_activity([project.pk])[project.pk]
    types = Flag.objects.active().filter(project=project).order_by("type").values_list("type")
    return (
        {"version": 1}
        | make_settings_document(project)
        | {
            "members": count_members([project.pk]).get(project.pk, 0),
            "favorite": project.pk in _read_favorites(caller),
            "stats": read_stats(project),
            "updatedAt": latest["lastUpdatedAt"] or iso(project.created_at),
            "environments": list_project_environment_documents(project),
            "featureTypeCounts": [{"type": kind, "count": n} for kind, n in types.annotate(Count("id"))],
            "owners": read_owners([project.pk]).get(project.pk, [{"ownerType": "system"}]),
        }
        | make_health_document(counts)
        | counts
        | latest
    )


def list_project_environment_documents(project: Project) -> list[Document]:
    links = ProjectEnvironment.objects.filter(project=project)
    rows = links.order_by("environment__sort_order", "environment_id")
    return [
        {"environment": name} | ({"defaultStrategy": strategy} if strategy else {})
        for name, strategy in rows.values_list("environment_id", "default_strategy")
    ]


def count_flags(ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """The number of active, archived, stale and potentially stale flags by project. Every id has an entry.

    Stale and potentially stale flags are active; no flag is both. One query.
    """
    rows = {
        project: dict(zip(FLAG_COUNTS, counts, strict=True))
        for project, *counts in fetch_rows(
            _FLAG_COUNTS, {"projects": list(ids), "now": timezone.now()}, prepared=len(ids) <= FEW
        )
    }
    return {project: rows.get(project) or dict.fromkeys(FLAG_COUNTS, 0) for project in ids}


def compute_health(counts: Mapping[str, int]) -> int:
    """The percentage of active flags that are neither stale nor potentially stale; 100 if there are none."""
    active = counts["featureCount"]
    overdue_or_stale = counts["staleFeatureCount"] + counts["potentiallyStaleFeatureCount"]
    return round(100 * (active - overdue_or_stale) / active) if active else 100


def make_health_document(counts: Mapping[str, int]) -> dict[str, int]:
    """Percentages that add up to 100. Current clients show the unhealthy part as technical debt."""
    healthy = compute_health(counts)
    return {"health": healthy, "technicalDebt": 100 - healthy}


def read_owners(ids: Sequence[str]) -> dict[str, list[Document]]:
    """The users and groups that own each project, in the order in which they became owners. One query."""
    owners: dict[str, list[Document]] = defaultdict(list)
    for project, group, name, email in fetch_rows(
        _OWNERS, {"projects": list(ids), "role": BuiltIn.OWNER.value}, prepared=len(ids) <= FEW
    ):
        if group is None:
            owner = {"ownerType": "user", "name": name, "email": email}
        else:
            owner = {"ownerType": "group", "name": group}
        owners[project].append(owner)
    return owners


def _read_favorites(caller: Caller) -> set[str]:
    if caller.user is None:
        return set()
    return {pk for (pk,) in fetch_rows(_FAVORITES, [caller.user.pk], prepared=True)}


# Environments ---------------------------------------------------------------------------------------------

_IN_PROJECTS = "(%(projects)s::text[] IS NULL OR project_id = ANY(%(projects)s))"
_ENVIRONMENTS = f"""
SELECT e.name, e.type, e.sort_order, e.enabled, coalesce(l.count, 0), coalesce(t.count, 0), coalesce(f.count, 0)
  FROM projects_environment e
  LEFT JOIN (SELECT environment_id, count(*) FROM projects_projectenvironment
              WHERE {_IN_PROJECTS} GROUP BY 1) l ON l.environment_id = e.name
  LEFT JOIN (SELECT environment_id, count(*) FROM groups_apitoken
              WHERE %(projects)s::text[] IS NULL OR all_projects
                 OR id IN (SELECT token_id FROM groups_apitokenproject WHERE {_IN_PROJECTS})
              GROUP BY 1) t ON t.environment_id = e.name
  LEFT JOIN (SELECT environment_id, count(*) FROM projects_flagenvironment p JOIN projects_flag f ON f.id = p.flag_id
              WHERE p.enabled AND f.archived_at IS NULL AND {_IN_PROJECTS} GROUP BY 1) f ON f.environment_id = e.name
 ORDER BY e.sort_order, e.name
"""  # noqa: S608 - constants


def make_environment_document(environment: Environment) -> Document:
    return {
        "name": environment.name,
        "type": environment.type,
        "sortOrder": environment.sort_order,
        "enabled": environment.enabled,
        "protected": False,
    }


def list_environment_summaries(*, projects: Sequence[str] | None) -> list[Document]:
    """All environments with their counts in these projects (None: in all projects). One query."""
    where = {"projects": None if projects is None else list(projects)}
    rows = fetch_rows(_ENVIRONMENTS, where, prepared=projects is None or len(projects) <= FEW)
    return [
        make_environment_document(Environment(name=name, type=kind, sort_order=sort_order, enabled=enabled))
        | {"projectCount": project_count, "apiTokenCount": token_count, "enabledToggleCount": enabled_count}
        for name, kind, sort_order, enabled, project_count, token_count, enabled_count in rows
    ]


def list_project_environment_summaries(project: Project) -> list[Document]:
    """All environments with their settings and counts in this project. Two queries."""
    links = {link.environment_id: link for link in ProjectEnvironment.objects.filter(project=project)}
    return [
        {
            "name": summary["name"],
            "type": summary["type"],
            "sortOrder": summary["sortOrder"],
            "enabled": summary["enabled"],
            "protected": False,
            "projectApiTokenCount": summary["apiTokenCount"],
            "projectEnabledToggleCount": summary["enabledToggleCount"],
            "visible": link is not None,
            "defaultStrategy": link.default_strategy if link else None,
            "commentRequired": bool(link and link.comment_required),
        }
        for summary in list_environment_summaries(projects=[project.pk])
        for link in [links.get(summary["name"])]
    ]


def annotate_flag_counts(projects: QuerySet[Project]) -> QuerySet[Any]:
    """Annotates each project with its number of active, stale (but active) and archived flags."""
    return projects.annotate(
        stale_flags=Count("flags", filter=Q(flags__archived_at=None, flags__stale=True)),
        active_flags=Count("flags", filter=Q(flags__archived_at=None)),
        archived_flags=Count("flags", filter=Q(flags__archived_at__isnull=False)),
    )


def search_projects(caller: Caller, words: Sequence[str]) -> QuerySet[Project]:
    """The caller's favorites come first among equals, archived projects last."""
    favorites = FavoriteProject.objects.filter(user=caller.user).values("project")
    projects = Project.objects.readable_by(caller).annotate(favorite=Q(pk__in=favorites))
    first: list[Any] = [F("archived_at").asc(nulls_first=True), "-favorite"]
    return find_best_matches(projects, words, "name", "id", also=["description"], first=first)


def search_new_flag_projects(caller: Caller, words: Sequence[str]) -> QuerySet[Any]:
    """Projects in which the caller may create flags, searched by the ``label`` of that action."""
    projects = Project.objects.active().readable_by(caller)
    if not caller.is_admin:
        projects = projects.filter(id__in=list_projects_with(caller, Permission.CREATE_FEATURE))
    labeled = projects.annotate(label=Concat(Value("New flag in "), "name"))
    return find_best_matches(labeled, words, "label", "id")


def needs_request(project_id: str, environments: Collection[str] | None = None) -> bool:
    """Whether a change in one of these environments of the project, or in any, needs a change request."""
    links = ProjectEnvironment.objects.needing_requests().filter(project=project_id)
    if environments is not None:
        links = links.filter(environment__in=environments)
    return links.exists()


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
