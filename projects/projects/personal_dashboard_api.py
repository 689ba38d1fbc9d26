"""/api/admin/personal-dashboard: data about the caller, in all projects and in one."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from groups.people.serializers import NamedAccount
from groups.viewsets import ApiRequest, ViewSet
from projects.access import access_project
from projects.projects.personal_dashboard import (
    EVENTS_SHOWN,
    MAX_FLAGS,
    make_dashboard_document,
    make_project_dashboard_document,
)
from projects.projects.serializers import OnboardingStatus


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
