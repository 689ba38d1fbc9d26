"""/api/admin/metrics/applications/:name/overview: an application at a glance."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from projects.applications.details import access_application
from projects.applications.overview import application_overview


class Names(serializers.ListField):
    child = serializers.CharField()


class EnvironmentIssues(serializers.Serializer):
    missingFeatures = Names(help_text="Always empty: names of flags that do not exist are not kept.")
    outdatedSdks = Names(help_text="Always empty: no SDK is called outdated.")


class EnvironmentOfApplication(serializers.Serializer):
    name = serializers.CharField()
    instanceCount = serializers.IntegerField()
    sdks = Names(help_text="name:version")
    frontendSdks = Names()
    backendSdks = Names()
    lastSeen = serializers.DateTimeField()
    issues = EnvironmentIssues()


class ApplicationIssues(serializers.Serializer):
    missingStrategies = Names(help_text="Strategy types it has and this installation has not.")


class ApplicationAtAGlance(serializers.Serializer):
    """An application's projects, and by environment its instances and SDKs."""

    projects = Names(help_text="Those whose flags it asked for.")
    featureCount = serializers.IntegerField(help_text="How many flags it asked for.")
    environments = EnvironmentOfApplication(many=True)
    issues = ApplicationIssues()


class ApplicationOverviewView(APIView):
    @extend_schema(
        operation_id="getApplicationOverview",
        tags=["Metrics"],
        responses={200: ApplicationAtAGlance} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        """An application at a glance."""
        return Response(application_overview(request.user, access_application(request.user, name)))


urlpatterns = [path("metrics/applications/<str:name>/overview", ApplicationOverviewView.as_view())]
