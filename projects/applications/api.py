"""GET /api/admin/projects/:projectId/applications: who uses a project."""

from django.db.models import QuerySet
from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.list_queries import ListFilter, list_parameters, sort_keys, terms_of
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from projects.access import access_project
from projects.applications import queries as documents

EXAMPLE = {
    "total": 1,
    "applications": [
        {
            "name": "web-shop",
            "environments": ["development", "production"],
            "instances": ["web-shop-7d9f", "web-shop-b2c1"],
            "sdks": [{"name": "unleash-node-sdk", "versions": ["5.9.0", "5.10.0"]}],
            "instanceCount": 2,
            "lastSeen": "2026-11-21T03:07:32.986Z",
        }
    ],
}


class ApplicationSdk(serializers.Serializer):
    name = serializers.CharField(help_text="SDK package name.")
    versions = serializers.ListField(
        child=serializers.CharField(), help_text="Versions in use, in version order."
    )


class ProjectApplicationRecord(serializers.Serializer):
    name = serializers.CharField(help_text="Application name, same as `appName` in the SDK configuration.")
    environments = serializers.ListField(
        child=serializers.CharField(), help_text="Environments in which it asked for flags of the project."
    )
    instances = serializers.ListField(
        child=serializers.CharField(),
        help_text="Its instances seen in the last 7 days (a setting), at most 100 (a setting).",
    )
    sdks = ApplicationSdk(many=True, help_text="SDKs of those instances.")
    instanceCount = serializers.IntegerField(help_text="How many instances there are, listed or not.")
    lastSeen = serializers.DateTimeField(help_text="When it last reported anything.")


class ProjectApplications(serializers.Serializer):
    total = serializers.IntegerField(help_text="Number of applications that match, on whatever page.")
    applications = ProjectApplicationRecord(many=True)


class ApplicationsFilter(ListFilter):
    sortBy = sort_keys(*documents.SORT_KEYS)

    def keep_matches(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        return documents.search(rows, terms_of(value))


PARAMETERS = list_parameters(
    ApplicationsFilter,
    query="Search over application name, SDK and environment: caseless, anywhere in them; a comma means or.",
    sort_by="Field to sort by, lists by their length, ties by name:",
)


class ProjectApplicationsView(APIView):
    @extend_schema(
        operation_id="getProjectApplications",
        summary="Applications that use a project",
        tags=["Projects"],
        parameters=PARAMETERS,
        responses={200: ProjectApplications} | refusals(400, 403, 404),
        examples=[OpenApiExample("Applications", value=EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """The applications that reported usage of a flag that is in the project now.

        A search leaves whole records: it chooses applications and hides nothing of them.
        """
        project = access_project(request.user, project_id)
        asked = ApplicationsFilter(request.query_params, documents.project_applications(project.pk))
        asked.check()
        key = asked.form.cleaned_data["sortBy"] or "appName"
        ordered = documents.sort(asked.qs, key, descending=asked.descending)
        page = documents.page(project.pk, ordered, asked.start, asked.length)
        records = documents.application_documents(project.pk, page)
        return Response({"total": asked.qs.count(), "applications": records})


urlpatterns = [path("projects/<str:project_id>/applications", ProjectApplicationsView.as_view())]
