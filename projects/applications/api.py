"""The API of applications, their instances and flag usage.

URLs: /api/admin/metrics, /api/admin/client-metrics and /api/admin/projects/:projectId/applications.

Request and response serializers of applications and reported usage.
"""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import Body, ListOf, Texts
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.applications import documents, queries
from projects.applications.cleanup import delete_application, update_application
from projects.applications.documents import (
    count_ignored,
    list_ignored_documents,
    list_unknown_flag_documents,
    make_application_overview,
)
from projects.applications.queries import ApplicationFilter, ProjectApplicationFilter
from projects.flags.insights.evaluations import read_raw_usage, read_usage
from projects.flags.serializers import SeenFlag
from projects.models import Application, ApplicationInstance, Flag
from projects.project_scope import InProjectViewSet


class ApplicationSdk(serializers.Serializer):
    name = serializers.CharField(help_text="SDK package name.")
    versions = Texts(help_text="Versions in use, in version order.")


class ProjectApplicationRecord(serializers.Serializer):
    name = serializers.CharField(help_text="Application name, same as `appName` in the SDK configuration.")
    environments = Texts(help_text="Environments in which it evaluated flags of the project.")
    instances = Texts(
        help_text="Its instances seen in the last 7 days, at most 100 (both configurable).",
    )
    sdks = ApplicationSdk(many=True, help_text="SDKs of those instances.")
    instanceCount = serializers.IntegerField(help_text="Number of instances, listed or not.")
    lastSeen = serializers.DateTimeField(help_text="Time of its last report.")


class ProjectApplications(serializers.Serializer):
    total = serializers.IntegerField(help_text="Number of matching applications on all pages.")
    applications = ProjectApplicationRecord(many=True)


class ApplicationUsage(serializers.Serializer):
    project = serializers.CharField()
    environments = Texts()


class ApplicationBase(serializers.Serializer):
    appName = serializers.CharField()
    createdAt = serializers.DateTimeField(help_text="Time of its first report.")
    description = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)
    color = serializers.CharField(allow_null=True)
    icon = serializers.CharField(allow_null=True)


class ApplicationOverview(ApplicationBase):
    strategies = Texts()
    usage = ApplicationUsage(many=True)


class Applications(serializers.Serializer):
    applications = ApplicationOverview(many=True)
    total = serializers.IntegerField()


class InstanceRecord(serializers.Serializer):
    instanceId = serializers.CharField()
    sdkVersion = serializers.CharField(allow_null=True)
    sdkFlavor = serializers.CharField(
        allow_null=True, help_text="The framework integration around the SDK: `fastapi:1.2.0`."
    )
    sdkType = serializers.CharField()
    environment = serializers.CharField()
    platformName = serializers.CharField(allow_null=True)
    platformVersion = serializers.CharField(allow_null=True)
    lastSeen = serializers.DateTimeField()
    createdAt = serializers.DateTimeField()
    appName = serializers.CharField(required=False)


class ApplicationDetail(ApplicationBase):
    strategies = serializers.ListField(child=serializers.DictField())
    instances = InstanceRecord(many=True, help_text="At most 100 (configurable).")
    instanceCount = serializers.IntegerField()
    seenToggles = SeenFlag(many=True)
    links = serializers.DictField(child=serializers.CharField())
    ignored = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="New instances, variants and unknown flags of the last two days that exceeded a limit and were not "
        "stored.",
    )


class IgnoredReport(serializers.Serializer):
    hour = serializers.DateTimeField(help_text="Start of the hour.")
    kind = serializers.ChoiceField(
        choices=["application", "instance", "variant", "impact metric", "unknown flag", "flag count"]
    )
    tokenName = serializers.CharField(
        allow_null=True, help_text="Token whose new applications or invalid counts were ignored."
    )
    appName = serializers.CharField(
        allow_null=True, help_text="Application whose instances, variants or unknown flags were."
    )
    count = serializers.IntegerField()


class IgnoredReports(serializers.Serializer):
    ignored = IgnoredReport(many=True)


class UnknownFlagPlace(serializers.Serializer):
    environment = serializers.CharField()
    seenAt = serializers.DateTimeField()


class UnknownFlagReport(serializers.Serializer):
    appName = serializers.CharField()
    environments = UnknownFlagPlace(many=True)


class UnknownFlagRecord(serializers.Serializer):
    name = serializers.CharField()
    lastSeenAt = serializers.DateTimeField()
    lastEventAt = serializers.DateTimeField(
        allow_null=True, help_text="The last event of a flag of this name, which has been deleted."
    )
    reports = UnknownFlagReport(many=True)


class UnknownFlags(serializers.Serializer):
    unknownFlags = UnknownFlagRecord(many=True)


class ApplicationNotes(Body):
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    url = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=2_000)
    color = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=50)
    icon = serializers.CharField(required=False, allow_null=True, allow_blank=True, max_length=255)
    strategies = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="Names of the strategy types it supports.",
    )


class Instances(serializers.Serializer):
    instances = InstanceRecord(many=True)


class HourUsage(serializers.Serializer):
    environment = serializers.CharField()
    timestamp = serializers.DateTimeField()
    yes = serializers.IntegerField()
    no = serializers.IntegerField()


class FlagUser(serializers.Serializer):
    appName = serializers.CharField()
    environment = serializers.CharField()
    lastSeenAt = serializers.DateTimeField()


class FeatureUsageBase(serializers.Serializer):
    version = serializers.IntegerField()
    maturity = serializers.CharField()
    featureName = serializers.CharField()


class FeatureUsage(FeatureUsageBase):
    lastHourUsage = HourUsage(many=True)
    seenApplications = Texts()
    usage = FlagUser(many=True, help_text="Applications that evaluated it, by environment, latest first.")


class RawHourUsage(HourUsage):
    featureName = serializers.CharField()
    appName = serializers.CharField()
    variants = serializers.DictField(child=serializers.IntegerField())


class RawFeatureUsage(FeatureUsageBase):
    data = RawHourUsage(many=True)  # type: ignore[assignment]


class EnvironmentIssues(serializers.Serializer):
    missingFeatures = Texts(help_text="Flags that it reported in the last two days though they do not exist.")
    outdatedSdks = Texts(help_text="Always empty: no SDK is reported as outdated.")


class EnvironmentOfApplication(serializers.Serializer):
    name = serializers.CharField()
    instanceCount = serializers.IntegerField()
    sdks = Texts(help_text="name:version")
    frontendSdks = Texts()
    backendSdks = Texts()
    lastSeen = serializers.DateTimeField()
    issues = EnvironmentIssues()


class ApplicationIssues(serializers.Serializer):
    missingStrategies = Texts(help_text="Strategy types it supports that do not exist here.")


class ApplicationAtAGlance(serializers.Serializer):
    """An application's projects, and by environment its instances and SDKs."""

    projects = Texts(help_text="Projects whose flags it evaluated.")
    featureCount = serializers.IntegerField(help_text="Number of flags it evaluated.")
    environments = EnvironmentOfApplication(many=True)
    issues = ApplicationIssues()


HOURS = 48  # how long hourly counts are kept
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


class ProjectApplicationViewSet(InProjectViewSet):
    tags = ("Projects",)

    @extend_schema(
        operation_id="getProjectApplications",
        summary="Applications that use a project",
        parameters=ProjectApplicationFilter.parameters(),
        responses=ProjectApplications,
        examples=[OpenApiExample("Applications", value=EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the applications that reported usage of a flag that is now in the project.

        A search selects applications; each is returned whole.
        """
        listed = ProjectApplicationFilter(request.query_params, queries.find_project_applications(project_id))
        options = listed.check()
        ordered = queries.sort(listed.qs, options["sortBy"], descending=options["sortOrder"] == "desc")
        page = queries.read_page(project_id, listed.cut_page(ordered))
        records = queries.list_application_documents(project_id, page)
        return Response({"total": listed.total(page), "applications": records})


class ApplicationViewSet(ViewSet):
    """Applications that use no project readable by the caller are not found."""

    tags = ("Metrics",)
    lookup_url_kwarg = "name"
    lookup_value_converter = "text"
    permissions = {"add": Permission.UPDATE_APPLICATION, "destroy": Permission.UPDATE_APPLICATION}
    application: Application

    def authorize(self, name: str | None = None, *args: Any, **kwargs: Any) -> None:
        if name is not None and self.action != "destroy":
            self.application = documents.access_application(self.caller, name)
        self.check_permission()

    @extend_schema(
        operation_id="getApplications",
        parameters=ApplicationFilter.parameters(),
        responses=Applications,
    )
    def list(self, request: ApiRequest) -> Response:
        """List all applications that have reported, with the projects whose flags they use."""
        listed = ApplicationFilter(request.query_params, documents.find_readable_applications(self.caller))
        options = listed.check()
        ordered = listed.qs.order_by("-name" if options["sortOrder"] == "desc" else "name")
        page = list(listed.cut_page(ordered))
        records = documents.list_overview_documents(self.caller, page)
        return Response({"applications": records, "total": listed.total(page)})

    @extend_schema(operation_id="getApplication", responses=ApplicationDetail)
    def retrieve(self, request: ApiRequest, name: str) -> Response:
        """Get an application with its instances and the flags it filtered for."""
        record = documents.make_detail_document(self.caller, self.application)
        return Response(record | {"ignored": count_ignored(self.application)})

    @extend_schema(
        operation_id="createApplication",
        request=ApplicationNotes,
        responses={202: None},
        examples=[
            OpenApiExample(
                "A page and a color",
                {"url": "https://wiki.example/web", "color": "#005577"},
                request_only=True,
            )
        ],
    )
    def add(self, request: ApiRequest, name: str) -> Response:
        """Add notes to an application that has reported. Omitted properties keep their values."""
        update_application(name, self.validated(ApplicationNotes), caller=self.caller)
        return Response(status=202)

    @extend_schema(operation_id="deleteApplication", responses={200: None})
    def destroy(self, request: ApiRequest, name: str) -> Response:
        """Delete an application with its instances and usage. Its next report creates it again.

        Deleting an unknown application is not an error.
        """
        delete_application(name, caller=self.caller)
        return Response()

    @extend_schema(operation_id="getApplicationOverview", responses=ApplicationAtAGlance)
    @action(detail=True)
    def overview(self, request: ApiRequest, name: str) -> Response:
        """Get an overview of an application by environment."""
        return Response(make_application_overview(self.caller, self.application))


class InstanceViewSet(ViewSet):
    tags = ("Metrics",)
    lookup_url_kwarg = "environment"

    @extend_schema(operation_id="getApplicationEnvironmentInstances", responses=Instances)
    def retrieve(self, request: ApiRequest, name: str, environment: str) -> Response:
        """List the instances of an application in an environment."""
        application = documents.access_application(self.caller, name)
        instances = ApplicationInstance.objects.filter(application=application, environment=environment)
        records = map(documents.make_instance_document, instances.order_by("instance_id"))
        return Response({"instances": list(records)})


class IgnoredReportViewSet(ViewSet):
    tags = ("Metrics",)

    @extend_schema(operation_id="getIgnoredReports", responses=IgnoredReports)
    def list(self, request: ApiRequest) -> Response:
        """List the ignored items of reports in the last two days, which were invalid or beyond an hourly limit."""
        return Response({"ignored": list_ignored_documents(self.caller)})


class UnknownFlagViewSet(ViewSet):
    tags = ("Metrics",)

    @extend_schema(operation_id="getUnknownFlags", responses=UnknownFlags)
    def list(self, request: ApiRequest) -> Response:
        """List the flags that SDKs reported in the last two days though they do not exist, at most 1,000, by name.

        Callers who can read all projects see all of them; others those of applications that use their projects.
        """
        return Response({"unknownFlags": list_unknown_flag_documents(self.caller)})


class FlagUsageViewSet(ViewSet):
    tags = ("Metrics",)
    lookup_url_kwarg = "name"
    flag: Flag

    def authorize(self, name: str, *args: Any, **kwargs: Any) -> None:
        self.flag = get_or_404(Flag.objects.readable_by(self.caller), f"Flag {name} not found.", name=name)

    @extend_schema(operation_id="getFeatureUsageSummary", responses=FeatureUsage)
    def retrieve(self, request: ApiRequest, name: str) -> Response:
        """Get how often a flag was filtered for in the last hour, and which applications have filtered for it."""
        return Response(read_usage(self.flag))

    @extend_schema(
        operation_id="getRawFeatureMetrics",
        parameters=[OpenApiParameter("hoursBack", int, description=f"1 to {HOURS}.", default=24)],
        responses=RawFeatureUsage,
    )
    @action(detail=True)
    def raw(self, request: ApiRequest, name: str) -> Response:
        """Get the counts of a flag by application, environment and hour."""
        hours = request.query_params.get("hoursBack") or "24"
        if not (hours.isascii() and hours.isdecimal() and len(hours) < 4 and 1 <= int(hours) <= HOURS):
            raise ValidationError.at("hoursBack", f"{hours!r} is not a whole number from 1 to {HOURS}.")
        return Response(read_raw_usage(self.flag, hours_back=int(hours)))
