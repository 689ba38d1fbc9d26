"""/api/admin/maintenance, /ui-config and /instance-admin/statistics."""

from typing import Any

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin import __version__
from flagadmin.core.http.fields import MAX_NAME_LENGTH, Body, ListOf, Texts
from flagadmin.core.http.openapi import refusal
from flagadmin.core.installation.state import forget, is_in_maintenance, read_frontend_origins
from flagadmin.core.lists.pages import make_csv_response
from groups.login.links import make_absolute_url
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.installation import actions
from projects.installation.actions import MAX_ORIGINS
from projects.installation.pages import flatten_statistics, read_statistics
from projects.rules import Limits


class Banners(serializers.Serializer):
    banners = serializers.ListField(child=serializers.DictField(), help_text="Always empty.")


class License(serializers.Serializer):
    isValid = serializers.BooleanField(help_text="Always true.")
    message = serializers.CharField(allow_blank=True)


class Maintenance(serializers.Serializer):
    enabled = serializers.BooleanField()


class MaintenanceBody(Body):
    enabled = serializers.BooleanField()


class Origins(serializers.Serializer):
    frontendApiOrigins = Texts()


class OriginsBody(Body):
    frontendApiOrigins = ListOf(
        child=serializers.CharField(max_length=MAX_NAME_LENGTH),
        max_length=MAX_ORIGINS,
        help_text="Such as https://app.example.org; * for all. Empty: no page of another origin.",
    )


class ResourceLimits(serializers.Serializer):
    """Only the limits that exist here."""

    segmentValues = serializers.IntegerField()
    strategySegments = serializers.IntegerField()
    featureEnvironmentStrategies = serializers.IntegerField()
    constraints = serializers.IntegerField()
    constraintValues = serializers.IntegerField()
    featureFlags = serializers.IntegerField()


class CurrentVersion(serializers.Serializer):
    oss = serializers.CharField()
    enterprise = serializers.CharField(help_text="Always empty.")


class VersionInfo(serializers.Serializer):
    current = CurrentVersion()
    latest = serializers.DictField(help_text="Always empty: nothing is fetched from elsewhere.")


class UiConfig(serializers.Serializer):
    """The server's settings that a console needs."""

    name = serializers.CharField()
    environment = serializers.CharField(help_text="Always Open Source.")
    version = serializers.CharField()
    unleashUrl = serializers.CharField(help_text="The address of this installation.")
    baseUriPath = serializers.CharField(help_text="Always empty.")
    authenticationType = serializers.CharField(help_text="Always open-source.")
    disablePasswordAuth = serializers.BooleanField()
    emailEnabled = serializers.BooleanField(help_text="Always false: no email is sent.")
    maintenanceMode = serializers.BooleanField()
    frontendApiOrigins = Texts()
    resourceLimits = ResourceLimits()
    versionInfo = VersionInfo()
    flags = serializers.DictField(help_text="Always empty.")


class ByType(serializers.Serializer):
    admin = serializers.IntegerField()
    client = serializers.IntegerField(help_text="Backend tokens created under their older name.")
    backend = serializers.IntegerField()
    frontend = serializers.IntegerField()


class ByDays(serializers.Serializer):
    last30 = serializers.IntegerField()
    last60 = serializers.IntegerField()
    last90 = serializers.IntegerField()


class ActiveUsers(ByDays):
    last7 = serializers.IntegerField()


class Buckets(serializers.Serializer):
    enabledCount = serializers.IntegerField()
    variantCount = serializers.IntegerField()


class ApplicationRange(serializers.Serializer):
    range = serializers.CharField(help_text="7d, 30d or allTime.")
    count = serializers.IntegerField()


class Statistics(serializers.Serializer):
    """Counted at the time of the request."""

    timestamp = serializers.DateTimeField()
    instanceId = serializers.CharField()
    versionOSS = serializers.CharField(help_text="flagadmin's version.")
    users = serializers.IntegerField()
    serviceAccounts = serializers.IntegerField()
    apiTokens = ByType()
    activeUsers = ActiveUsers(help_text="Who logged in or used a personal token.")
    readOnlyUsers = serializers.IntegerField(help_text="Users without any permission to change something.")
    groups = serializers.IntegerField()
    roles = serializers.IntegerField()
    customRootRoles = serializers.IntegerField()
    customRootRolesInUse = serializers.IntegerField()
    featureToggles = serializers.IntegerField()
    archivedFeatureToggles = serializers.IntegerField()
    projects = serializers.IntegerField()
    environments = serializers.IntegerField()
    contextFields = serializers.IntegerField()
    segments = serializers.IntegerField()
    strategies = serializers.IntegerField(help_text="Strategy types.")
    maxEnvironmentStrategies = serializers.IntegerField()
    maxConstraints = serializers.IntegerField()
    maxConstraintValues = serializers.IntegerField()
    SAMLenabled = serializers.BooleanField()
    OIDCenabled = serializers.BooleanField()
    SCIMenabled = serializers.BooleanField()
    passwordAuthEnabled = serializers.BooleanField()
    clientApps = ApplicationRange(many=True)
    featureExports = serializers.IntegerField()
    featureImports = serializers.IntegerField()
    productionChanges = ByDays(help_text="Events in production environments.")
    previousDayMetricsBucketsCount = Buckets(help_text="Hourly counts of the previous day, in UTC.")


def make_ui_config(address: str) -> dict[str, Any]:
    limits = Limits.from_settings()
    return {
        "name": "flagadmin",
        "environment": "Open Source",
        "version": __version__,
        "unleashUrl": address,
        "baseUriPath": "",
        "authenticationType": "open-source",
        "disablePasswordAuth": not settings.PASSWORD_LOGIN,
        "emailEnabled": False,
        "maintenanceMode": is_in_maintenance(),
        "frontendApiOrigins": list(read_frontend_origins()),
        "resourceLimits": {
            "segmentValues": limits.segment_values,
            "strategySegments": limits.segments,
            "featureEnvironmentStrategies": limits.strategies,
            "constraints": limits.constraints,
            "constraintValues": limits.constraint_values,
            "featureFlags": limits.flags,
        },
        "versionInfo": {"current": {"oss": __version__, "enterprise": ""}, "latest": {}},
        "flags": {},
    }


class MaintenanceViewSet(ViewSet):
    tags = ("Installation",)
    permissions = {"create": actions.MAY_SET_MAINTENANCE}

    @extend_schema(operation_id="getMaintenance", responses=Maintenance)
    def list(self, request: ApiRequest) -> Response:
        """Tell whether maintenance mode is on."""
        forget()
        return Response({"enabled": is_in_maintenance()})

    @extend_schema(
        operation_id="toggleMaintenance",
        request=MaintenanceBody,
        responses={204: None, 409: refusal(409, "A long change, such as an import, is still being written.")},
    )
    def create(self, request: ApiRequest) -> Response:
        """Switch maintenance mode on or off.

        While it is on, every change is refused with 503. SDKs, reading and logging in go on. After the response, no
        change is still being written.
        """
        actions.set_maintenance(self.validated(MaintenanceBody)["enabled"], caller=self.caller)
        return Response(status=204)


class UnleashConsoleViewSet(ViewSet):
    """Answers the requests that Unleash's console makes on every page about paid features missing here."""

    tags = ("Installation",)

    @extend_schema(operation_id="getBanners", responses=Banners)
    @action(detail=False)
    def banners(self, request: ApiRequest) -> Response:
        """List banners: there are none."""
        return Response({"banners": []})

    @extend_schema(operation_id="checkLicense", responses=License)
    @action(detail=False, url_path="license/check")
    def license(self, request: ApiRequest) -> Response:
        """Check the license: flagadmin needs none."""
        return Response({"isValid": True, "message": ""})

    @extend_schema(operation_id="getUserAccessRequests", responses={200: OpenApiTypes.ANY})
    @action(detail=False, url_path="user-access-requests")
    def user_access_requests(self, request: ApiRequest) -> Response:
        """List requests for access: there are none."""
        return Response([])


class UiConfigViewSet(ViewSet):
    tags = ("Installation",)
    permissions = {"set_cors": actions.MAY_SET_ORIGINS}

    @extend_schema(operation_id="getUiConfig", responses=UiConfig)
    def list(self, request: ApiRequest) -> Response:
        """Get the settings that a console needs."""
        return Response(make_ui_config(make_absolute_url(request._request, "/").rstrip("/")))

    @extend_schema(operation_id="getCors", responses=Origins)
    @action(detail=False)
    def cors(self, request: ApiRequest) -> Response:
        """List the origins whose pages may call the frontend API and OFREP."""
        forget()
        return Response({"frontendApiOrigins": list(read_frontend_origins())})

    @extend_schema(operation_id="setCors", request=OriginsBody, responses={204: None})
    @cors.mapping.post
    def set_cors(self, request: ApiRequest) -> Response:
        """Set the origins whose pages may call the frontend API and OFREP.

        From then on, `FLAGADMIN_FRONTEND_ORIGINS` no longer counts. Takes effect within two seconds.
        """
        origins = self.validated(OriginsBody)["frontendApiOrigins"]
        actions.set_frontend_origins(origins, caller=self.caller)
        return Response(status=204)


class StatisticsViewSet(ViewSet):
    tags = ("Installation",)
    permissions = {"list": Permission.ADMIN, "csv": Permission.ADMIN}

    @extend_schema(operation_id="getInstanceAdminStats", responses=Statistics)
    def list(self, request: ApiRequest) -> Response:
        """Count the installation's contents."""
        return Response(read_statistics(self.caller))

    @extend_schema(
        operation_id="getInstanceAdminStatsCsv",
        responses={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="A header and one line.")
        },
    )
    @action(detail=False)
    def csv(self, request: ApiRequest) -> HttpResponseBase:
        """Get the same counts as a CSV file."""
        counts = flatten_statistics(read_statistics(self.caller))
        return make_csv_response(request, "statistics", list(counts), [list(counts.values())])
