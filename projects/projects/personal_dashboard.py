"""The caller's dashboard: own projects and flags, and the people to ask for access."""

from typing import Any

from django.db.models import Exists, OuterRef, Q

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import Grant, Role, User
from groups.permissions import BuiltIn
from projects.history.queries import in_present_projects, readable_events
from projects.history.serializers import make_event_record
from projects.members.queries import count_members
from projects.models import FavoriteFlag, Flag, Project
from projects.projects.activity import read_latest_activity
from projects.projects.queries import (
    count_flags,
    make_health_document,
    read_owners,
)

MAX_FLAGS = 100
EVENTS_SHOWN = 10


def make_dashboard_document(caller: Caller) -> Document:
    """Administrators, owners of projects, and the projects and flags of the caller. Seven queries."""
    return {
        "admins": _list_administrators(),
        "projectOwners": _list_project_owners(caller),
        "projects": _list_own_projects(caller),
        "flags": _list_own_flags(caller),
    }


def make_project_dashboard_document(project: Project, *, caller: Caller) -> Document:
    """Health, onboarding, latest events and owners of a project, and the roles of the caller in it. Six queries."""
    counts = count_flags([project.pk])[project.pk]
    return {
        "insights": _make_insights(counts),
        "onboardingStatus": read_latest_activity([project.pk])[project.pk]["onboardingStatus"],
        "latestEvents": _list_latest_events(project, caller),
        "owners": read_owners([project.pk]).get(project.pk, [{"ownerType": "system"}]),
        "roles": list(_list_roles(project, caller)),
    }


def _list_administrators() -> list[Document]:
    """People whose own root role, or that of one of their groups, is Admin."""
    people = User.objects.people().active().admins().distinct().order_by("username")
    return [
        {"id": person.pk, "username": person.username, "name": person.display_name, "email": person.email}
        for person in people
    ]


def _list_project_owners(caller: Caller) -> list[Document]:
    """People who own a project that the caller can read."""
    owned = Grant.objects.filter(
        user=OuterRef("pk"),
        role=BuiltIn.OWNER,
        project__in=Project.objects.active().readable_by(caller),
    )
    people = User.objects.active().filter(Exists(owned)).order_by("username")
    return [{"ownerType": "user", "name": person.display_name, "email": person.email} for person in people]


def _list_own_projects(caller: Caller) -> list[Document]:
    """Active projects in which the caller has a role, directly or through a group."""
    projects = Project.objects.active().filter(pk__in=_find_grants(caller).values("project"))
    names = dict(projects.order_by("name", "id").values_list("id", "name"))
    counts, members = count_flags(list(names)), count_members(list(names))
    return [
        {
            "id": project,
            "name": name,
            "memberCount": members.get(project, 0),
            "featureCount": counts[project]["featureCount"],
        }
        | make_health_document(counts[project])
        for project, name in names.items()
    ]


def _list_own_flags(caller: Caller) -> list[Document]:
    """Active flags that the caller has marked as favorites or created: favorites first, then the newest."""
    if caller.user is None:
        return []
    favorite = Exists(FavoriteFlag.objects.filter(user=caller.user, flag=OuterRef("pk")))
    flags = Flag.objects.active().readable_by(caller).annotate(favorite=favorite)
    own = flags.filter(Q(created_by=caller.user) | Q(favorite=True))
    return [
        {"name": flag.name, "project": flag.project_id, "type": flag.type, "createdAt": iso(flag.created_at)}
        for flag in own.order_by("-favorite", "-created_at", "name")[:MAX_FLAGS]
    ]


def _make_insights(counts: dict[str, int]) -> Document:
    """Past health is not stored, so the averages are null."""
    total, stale = counts["featureCount"], counts["staleFeatureCount"]
    potentially_stale = counts["potentiallyStaleFeatureCount"]
    return {
        "avgHealthCurrentWindow": None,
        "avgHealthPastWindow": None,
        "totalFlags": total,
        "activeFlags": total - stale - potentially_stale,
        "staleFlags": stale,
        "potentiallyStaleFlags": potentially_stale,
    } | make_health_document(counts)


def _list_latest_events(project: Project, caller: Caller) -> list[Document]:
    events = in_present_projects(readable_events(caller).filter(project=project.pk)).newest_first()[
        :EVENTS_SHOWN
    ]
    records = map(make_event_record, events)
    return [{key: record[key] for key in ("id", "summary", "createdBy", "createdAt")} for record in records]


def _list_roles(project: Project, caller: Caller) -> Any:
    role_ids = _find_grants(caller).filter(project=project).values("role")
    return Role.objects.filter(pk__in=role_ids).order_by("id").values("id", "name", "type")


def _find_grants(caller: Caller) -> Any:
    """The roles of the caller in projects; none for an API token."""
    if caller.user is None:
        return Grant.objects.none()
    return Grant.objects.filter(Q(user=caller.user) | Q(group__memberships__user=caller.user))
