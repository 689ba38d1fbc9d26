"""/api/frontend: evaluates flags on the server for SDKs in browsers and apps, which must not see definitions."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from flagadmin.core.http.middleware import get_client_address
from groups.authentication import ApiKeyAuthentication, ApiRequest, IsFrontendCaller
from playground.engine.context import TOP_LEVEL
from playground.openapi import EvaluationContext
from playground.snapshot_cache import load_snapshot_at
from projects.applications.usage_report import InstanceKey, UsageReport
from sdk import schemas as wire
from sdk.base import CorsView, get_environment, get_token, respond
from sdk.evaluation.prepared import (
    answer_toggles,
    make_context,
    prepare,
    read_body_context,
    read_query_context,
)
from sdk.poll_shortcuts import Origin, mark_origin
from sdk.reports.api import make_instance, read_metrics_report
from sdk.reports.batcher import report_batcher
from sdk.watcher.watcher import token_scope

EXAMPLE = {
    "toggles": [
        {
            "name": "new-checkout",
            "enabled": True,
            "variant": {
                "name": "blue",
                "enabled": True,
                "payload": {"type": "string", "value": "#00f"},
                "feature_enabled": True,
                "featureEnabled": True,
            },
            "impressionData": False,
        }
    ]
}
STORED: dict[Any, Any] = {(200, "text/plain"): OpenApiResponse(str, description="Stored.")}


class Toggle(serializers.Serializer):
    name = serializers.CharField()
    enabled = serializers.BooleanField(help_text="Always true: other flags are not listed.")
    variant = serializers.DictField()
    impressionData = serializers.BooleanField()


class Toggles(serializers.Serializer):
    toggles = Toggle(many=True)


class FrontendRequest(serializers.Serializer):
    context = EvaluationContext(required=False)  # type: ignore[assignment]


class FrontendView(CorsView):
    """Accepts frontend tokens only."""

    tags = ("Frontend API",)
    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (IsFrontendCaller,)


class FrontendTogglesView(FrontendView):
    @extend_schema(
        operation_id="getFrontendFeatures",
        parameters=[
            OpenApiParameter(name, str, description="Of the evaluation context.")
            for name in sorted(TOP_LEVEL)
        ]
        + [
            OpenApiParameter(
                "properties",
                {"type": "object", "additionalProperties": {"type": "string"}},
                style="deepObject",
                description="Custom context fields, `properties[country]=NO`.",
            )
        ],
        responses={200: Toggles, 304: OpenApiResponse(description="Nothing has changed; no body.")},
        examples=[
            OpenApiExample("Flags that are on", value=EXAMPLE, response_only=True, status_codes=["200"])
        ],
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        """List the flags that are enabled for the context in the query. Other parameters count as properties."""
        return evaluate_toggles(
            request, read_body_context({"context": read_query_context(request.query_params.dict())})
        )

    @extend_schema(
        operation_id="getFrontendFeaturesForContext",
        request=FrontendRequest,
        responses={200: Toggles},
        examples=[
            OpenApiExample("Flags that are on", value=EXAMPLE, response_only=True, status_codes=["200"])
        ],
    )
    def post(self, request: ApiRequest) -> HttpResponse:
        """List the flags that are enabled for the context in the body."""
        return evaluate_toggles(request, read_body_context(request.data))


def evaluate_toggles(request: ApiRequest, fields: dict[str, Any]) -> HttpResponse:
    """Environment and projects are the token's, regardless of the context."""
    token = get_token(request)
    scope = token_scope(token, using=DEFAULT_DB_ALIAS)
    context = make_context(
        fields,
        environment=scope.environment,
        address=get_client_address(request._request),
        now=timezone.now(),
    )
    prepared = prepare(load_snapshot_at(scope.revisions, scope.environment), scope.revisions)
    known = request.headers.get("If-None-Match", "") if request.method == "GET" else ""
    response = respond(answer_toggles(prepared, context, known))
    response["Cache-Control"] = "no-cache"
    mark_origin(response, Origin(token.pk, scope))
    return response


class FrontendRegisterView(FrontendView):
    @extend_schema(
        operation_id="registerFrontendClient",
        request=wire.Registration,
        responses=STORED,
    )
    def post(self, request: ApiRequest) -> HttpResponse:
        """Register a frontend SDK that has started."""
        body = wire.read(wire.Registration, request.data)
        report = UsageReport()
        place = InstanceKey(body.appName, str(body.instanceId), get_environment(request))
        report.add_instance(place, make_instance(body, request, sdk_type="frontend"), body.strategies)
        report_batcher.submit(report, token=get_token(request).pk)
        return HttpResponse("OK", content_type="text/plain")


class FrontendMetricsView(FrontendView):
    @extend_schema(
        operation_id="registerFrontendMetrics",
        request=wire.Metrics,
        responses=STORED,
    )
    def post(self, request: ApiRequest) -> HttpResponse:
        """Store what a frontend SDK counted since its last report."""
        report = read_metrics_report(request, sdk_type="frontend")
        report_batcher.submit(report, token=get_token(request).pk)
        return HttpResponse("OK", content_type="text/plain")


# The same under the frontend API's earlier name, which some SDKs still use.


@extend_schema(exclude=True)
class ProxyTogglesView(FrontendTogglesView):
    pass


@extend_schema(exclude=True)
class ProxyRegisterView(FrontendRegisterView):
    pass


@extend_schema(exclude=True)
class ProxyMetricsView(FrontendMetricsView):
    pass
