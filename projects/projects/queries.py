"""Reads projects and environments into the documents used by the API and by audit events."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Value
from django.db.models.functions import Concat
from django.utils import timezone

from flagadmin.core.db.matching import best_matches
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from groups.models import ApiToken, Grant
from groups.permissions import BuiltIn, Permission
from projects.access import projects_with
from projects.flags.search_conditions import overdue
from projects.members.counts import member_counts
from projects.models import (
    Environment,
    FavoriteProject,
    Flag,
    FlagEnvironment,
    Project,
    ProjectEnvironment,
)
from projects.projects.activity import latest_documents, stats_document

Document = dict[str, Any]
FLAG_COUNTS = (
    "featureCount",
    "archivedFeatureCount",
    "staleFeatureCount",
    "potentiallyStaleFeatureCount",
)
OPEN = "open"  # the only mode: roles alone decide who may read a project


def settings_document(project: Project) -> Document:
    """The project's own fields, as in its audit events and in the response to its creation."""
    return {
        "id": project.pk,
        "name": project.name,
        "description": project.description,
        "mode": OPEN,
        "defaultStickiness": project.default_stickiness,
        "featureLimit": project.flag_limit,
        "featureNaming": naming_document(project),
        "refuseBrokenExpectations": project.refuse_broken_expectations,
        "createdAt": iso(project.created_at),
        "archivedAt": iso(project.archived_at),
    }


def naming_document(project: Project) -> Document:
    return {
        "pattern": project.naming_pattern or None,
        "example": project.naming_example or None,
        "description": project.naming_description or None,
    }


def project_summaries(projects: Sequence[Project], *, caller: Caller) -> list[Document]:
    """Projects as shown in lists, with their counts. Six queries."""
    ids = [project.pk for project in projects]
    counts, members, latest = flag_counts(ids), member_counts(ids), latest_documents(ids)
    owners, favorites = owners_of(ids), _favorites(caller)
    return [
        {
            "id": project.pk,
            "name": project.name,
            "description": project.description,
            "mode": OPEN,
            "defaultStickiness": project.default_stickiness,
            "memberCount": members.get(project.pk, 0),
            "favorite": project.pk in favorites,
            "owners": owners.get(project.pk, [{"ownerType": "system"}]),
            "createdAt": iso(project.created_at),
            "archivedAt": iso(project.archived_at),
        }
        | health_document(counts[project.pk])
        | counts[project.pk]
        | latest[project.pk]
        for project in projects
    ]


def project_overview(project: Project, *, caller: Caller) -> Document:
    """One project with its settings, environments and counts. Twelve queries."""
    counts = flag_counts([project.pk])[project.pk]
    latest = latest_documents([project.pk])[project.pk]
    types = Flag.objects.active().filter(project=project).order_by("type").values_list("type")
    return (
        {"version": 1}
        | settings_document(project)
        | {
            "members": member_counts([project.pk]).get(project.pk, 0),
            "favorite": project.pk in _favorites(caller),
            "stats": stats_document(project),
            "updatedAt": latest["lastUpdatedAt"] or iso(project.created_at),
            "environments": project_environment_documents(project),
            "featureTypeCounts": [{"type": kind, "count": n} for kind, n in types.annotate(Count("id"))],
            "owners": owners_of([project.pk]).get(project.pk, [{"ownerType": "system"}]),
            "linkTemplates": [],
        }
        | health_document(counts)
        | counts
        | latest
    )


def project_environment_documents(project: Project) -> list[Document]:
    links = ProjectEnvironment.objects.filter(project=project)
    rows = links.order_by("environment__sort_order", "environment_id")
    return [
        {"environment": name} | ({"defaultStrategy": strategy} if strategy else {})
        for name, strategy in rows.values_list("environment_id", "default_strategy")
    ]


def flag_counts(ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """The number of active, archived, stale and potentially stale flags by project. Every id has an entry.

    Stale and potentially stale flags are active; no flag is both. Two queries.
    """
    counts = {project: dict.fromkeys(FLAG_COUNTS, 0) for project in ids}
    active = Q(archived_at=None)
    rows = Flag.objects.filter(project_id__in=ids).order_by().values_list("project_id")
    for project, *numbers in rows.annotate(
        featureCount=Count("id", filter=active),
        archivedFeatureCount=Count("id", filter=~active),
        staleFeatureCount=Count("id", filter=active & Q(stale=True)),
        potentiallyStaleFeatureCount=Count("id", filter=active & overdue(timezone.now())),
    ):
        counts[project] = dict(zip(FLAG_COUNTS, numbers, strict=True))
    return counts


def health(counts: Mapping[str, int]) -> int:
    """The percentage of active flags that are neither stale nor potentially stale; 100 if there are none."""
    active = counts["featureCount"]
    overdue_or_stale = counts["staleFeatureCount"] + counts["potentiallyStaleFeatureCount"]
    return round(100 * (active - overdue_or_stale) / active) if active else 100


def health_document(counts: Mapping[str, int]) -> dict[str, int]:
    """Percentages that add up to 100. Current clients show the unhealthy part as technical debt."""
    healthy = health(counts)
    return {"health": healthy, "technicalDebt": 100 - healthy}


def owners_of(ids: Sequence[str]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = defaultdict(list)
    grants = Grant.objects.filter(project_id__in=ids, role_id=BuiltIn.OWNER).order_by("id")
    for grant in grants.select_related("user", "group"):
        if grant.user is not None:
            owner = {"ownerType": "user", "name": grant.user.display_name, "email": grant.user.email}
        else:
            owner = {"ownerType": "group", "name": grant.group.name if grant.group else None}
        found[grant.project_id].append(owner)
    return found


def _favorites(caller: Caller) -> set[str]:
    if caller.user is None:
        return set()
    return set(FavoriteProject.objects.filter(user=caller.user).values_list("project_id", flat=True))


# Environments ---------------------------------------------------------------------------------------------


def environment_document(environment: Environment) -> Document:
    return {
        "name": environment.name,
        "type": environment.type,
        "sortOrder": environment.sort_order,
        "enabled": environment.enabled,
        "protected": False,
    }


def environment_summaries(
    environments: Iterable[Environment], *, projects: Sequence[str] | None
) -> list[Document]:
    """Environments with their counts in these projects (None: in all projects). Three queries."""
    links, tokens = ProjectEnvironment.objects.all(), ApiToken.objects.all()
    flags = FlagEnvironment.objects.filter(enabled=True, flag__archived_at=None)
    if projects is not None:
        links, flags = links.filter(project__in=projects), flags.filter(flag__project__in=projects)
        tokens = tokens.filter(Q(scopes__project__in=projects) | Q(all_projects=True))
    link_counts, token_counts, enabled_counts = map(_by_environment, (links, tokens, flags))
    return [
        environment_document(environment)
        | {
            "projectCount": link_counts.get(environment.pk, 0),
            "apiTokenCount": token_counts.get(environment.pk, 0),
            "enabledToggleCount": enabled_counts.get(environment.pk, 0),
        }
        for environment in environments
    ]


def project_environment_summaries(project: Project) -> list[Document]:
    """All environments with their settings and counts in this project. Five queries."""
    links = dict(
        ProjectEnvironment.objects.filter(project=project).values_list("environment_id", "default_strategy")
    )
    environments = Environment.objects.all()
    return [
        {
            "name": summary["name"],
            "type": summary["type"],
            "sortOrder": summary["sortOrder"],
            "enabled": summary["enabled"],
            "protected": False,
            "projectApiTokenCount": summary["apiTokenCount"],
            "projectEnabledToggleCount": summary["enabledToggleCount"],
            "visible": summary["name"] in links,
            "defaultStrategy": links.get(summary["name"]),
        }
        for summary in environment_summaries(environments, projects=[project.pk])
    ]


def _by_environment(rows: Any) -> dict[str, int]:
    counted = rows.order_by().values("environment_id").annotate(count=Count("id", distinct=True))
    return dict(counted.values_list("environment_id", "count"))


def counted_projects(projects: QuerySet[Project]) -> QuerySet[Any]:
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
    return best_matches(projects, words, "name", "id", also=["description"], first=first)


def search_new_flag_projects(caller: Caller, words: Sequence[str]) -> QuerySet[Any]:
    """Projects in which the caller may create flags, searched by the ``label`` of that action."""
    projects = Project.objects.active().readable_by(caller)
    if not caller.is_admin:
        projects = projects.filter(id__in=projects_with(caller, Permission.CREATE_FEATURE))
    labeled = projects.annotate(label=Concat(Value("New flag in "), "name"))
    return best_matches(labeled, words, "label", "id")
