"""/api/admin/maintenance, /ui-config and /instance-admin/statistics."""

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.openapi import refusal
from flagadmin.core.installation.state import forget, is_in_maintenance, read_frontend_origins
from flagadmin.core.lists.pages import make_csv_response
from groups.authentication import ApiRequest
from groups.login.links import make_absolute_url
from groups.permissions import Permission
from groups.viewsets import ViewSet
from projects.installation import actions
from projects.installation.serializers import (
    Maintenance,
    MaintenanceBody,
    Origins,
    OriginsBody,
    Statistics,
    UiConfig,
    make_ui_config,
)
from projects.installation.statistics import flatten_statistics, read_statistics


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
        """Count what the installation has."""
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
