"""/api/admin/personal-dashboard: data about the caller, in all projects and in one.

The caller's dashboard: own projects and flags, and the people to ask for access.
"""

from typing import Any

from django.db.models import Exists, OuterRef, Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import Grant, Role, User
from groups.people.serializers import NamedAccount
from groups.permissions import BuiltIn
from groups.viewsets import ApiRequest, ViewSet
from projects.access import access_project
from projects.history.queries import in_present_projects, readable_events
from projects.history.serializers import make_event_record
from projects.members.queries import count_members
from projects.models import FavoriteFlag, Flag, Project
from projects.projects.activity import read_latest_activity
from projects.projects.queries import count_flags, make_health_document, read_owners
from projects.projects.serializers import OnboardingStatus

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


class Administrator(NamedAccount):
    pass


class PersonalProject(serializers.Serializer):
    id = serializers.CharField()
    name = serializers.CharField()
    memberCount = serializers.IntegerField()
    featureCount = serializers.IntegerField(help_text="Active flags.")
    health = serializers.IntegerField()
    technicalDebt = serializers.IntegerField()


class PersonalFlag(serializers.Serializer):
    name = serializers.CharField()
    project = serializers.CharField()
    type = serializers.CharField()
    createdAt = serializers.DateTimeField()


class PersonalDashboard(serializers.Serializer):
    admins = Administrator(many=True, help_text="People with the root role Admin.")
    projectOwners = serializers.ListField(
        child=serializers.DictField(), help_text="People who own a project that the caller can read."
    )
    projects = PersonalProject(many=True, help_text="Active projects in which the caller has a role.")
    flags = PersonalFlag(
        many=True,
        help_text=f"Favorites, then the flags that the caller created, newest first; at most {MAX_FLAGS}.",
    )


class ProjectInsights(serializers.Serializer):
    avgHealthCurrentWindow = serializers.IntegerField(
        allow_null=True, help_text="Always null: it is not kept."
    )
    avgHealthPastWindow = serializers.IntegerField(allow_null=True, help_text="Always null.")
    totalFlags = serializers.IntegerField(help_text="Flags that are not archived.")
    activeFlags = serializers.IntegerField(help_text="Those that are neither stale nor potentially stale.")
    staleFlags = serializers.IntegerField()
    potentiallyStaleFlags = serializers.IntegerField()
    health = serializers.IntegerField()
    technicalDebt = serializers.IntegerField()


class LatestEvent(serializers.Serializer):
    id = serializers.IntegerField()
    summary = serializers.CharField()
    createdBy = serializers.CharField()
    createdAt = serializers.DateTimeField()


class OwnRole(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    type = serializers.CharField()


class PersonalProjectDetails(serializers.Serializer):
    insights = ProjectInsights()
    onboardingStatus = OnboardingStatus()
    latestEvents = LatestEvent(many=True, help_text=f"The last {EVENTS_SHOWN}.")
    owners = serializers.ListField(child=serializers.DictField())
    roles = OwnRole(many=True, help_text="Roles of the caller in the project, also through groups.")


class PersonalDashboardViewSet(ViewSet):
    tags = ("Projects",)
    lookup_url_kwarg = "project_id"

    @extend_schema(operation_id="getPersonalDashboard", responses=PersonalDashboard)
    def list(self, request: ApiRequest) -> Response:
        """Get the caller's projects and flags, and whom to ask for access to others.

        An API token that is not personal has neither projects nor flags.
        """
        return Response(make_dashboard_document(self.caller))

    @extend_schema(operation_id="getPersonalDashboardProjectDetails", responses=PersonalProjectDetails)
    def retrieve(self, request: ApiRequest, project_id: str) -> Response:
        """Get the latest of a project, and the caller's roles in it."""
        project = access_project(self.caller, project_id)
        return Response(make_project_dashboard_document(project, caller=self.caller))
