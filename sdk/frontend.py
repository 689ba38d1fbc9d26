"""/api/frontend: evaluates flags on the server for SDKs in browsers and apps, which must not see definitions."""

import hashlib
import random
import re
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from flagadmin.core.errors import Problem, ValidationError
from flagadmin.core.http.client_address import client_address
from flagadmin.core.http.not_modified import is_known, not_modified
from groups.authentication import ApiKeyAuthentication, ApiRequest, IsFrontendCaller
from playground.engine.context import TOP_LEVEL, Context
from playground.engine.evaluator import evaluate
from playground.evaluation_metrics import EVALUATIONS
from playground.openapi import EvaluationContext
from playground.request import read_context
from playground.response.frontend import render_toggles
from playground.snapshot_cache import snapshot_at
from projects.applications.usage_report import InstanceKey, UsageReport
from sdk import schemas as wire
from sdk.base import environment_of, token_of
from sdk.cors import CorsView
from sdk.reports.batcher import report_batcher
from sdk.reports.metrics import metrics_report
from sdk.reports.register import instance_of
from sdk.watcher.scopes import token_scope

_PROPERTY = re.compile(r"properties\[(.+)\]")

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
    evaluate_toggles = Toggle(many=True)


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
        return evaluate_toggles(request, read_body_context({"context": read_query_context(request)}))

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


def evaluate_toggles(request: ApiRequest, context: dict[str, Any]) -> HttpResponse:
    """Environment and projects are the key's, whatever a context says."""
    token = token_of(request)
    environment = environment_of(request)
    defaults = {"remoteAddress": client_address(request._request), "appName": ""}
    compiled = snapshot_at(token_scope(token, using=DEFAULT_DB_ALIAS).revisions, environment)
    evaluation = evaluate(
        compiled.snapshot,
        Context(defaults | context | {"environment": environment}),
        now=timezone.now(),
        random=random.random,
    )
    EVALUATIONS.labels("frontend").inc(len(compiled.flags))
    body = render_toggles(compiled, evaluation)
    etag = f'W/"{hashlib.blake2b(body, digest_size=8).hexdigest()}"'
    if request.method == "GET" and is_known(request, etag):
        answer = not_modified(etag)
    else:
        answer = HttpResponse(body, content_type="application/json", headers={"ETag": etag})
    answer["Cache-Control"] = "no-cache"
    return answer


def read_query_context(request: ApiRequest) -> dict[str, Any]:
    """``userId=7&properties[country]=NO``; any other parameter is a property too, the last of a name counts."""
    context: dict[str, Any] = {}
    properties: dict[str, str] = {}
    for name, value in request.query_params.dict().items():
        if name in TOP_LEVEL:
            context[name] = value
        elif match := _PROPERTY.fullmatch(name):
            properties[match[1]] = value
        else:
            properties.setdefault(name, value)
    return context | {"properties": properties}


def read_body_context(body: Any) -> dict[str, Any]:
    """Raises ValidationError. No body and no context are an empty one."""
    if not isinstance(body, dict):
        raise ValidationError("The body must be an object.")
    problems: list[Problem] = []
    context = read_context({"context": body.get("context") or {}}, problems)
    if problems:
        raise ValidationError.of(problems)
    return context


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
        place = InstanceKey(body.appName, str(body.instanceId), environment_of(request))
        report.add_instance(place, instance_of(body, request, sdk_type="frontend"), body.strategies)
        report_batcher.submit(report, token=token_of(request).pk)
        return HttpResponse("OK", content_type="text/plain")


class FrontendMetricsView(FrontendView):
    @extend_schema(
        operation_id="registerFrontendMetrics",
        request=wire.Metrics,
        responses=STORED,
    )
    def post(self, request: ApiRequest) -> HttpResponse:
        """Store what a frontend SDK counted since its last report."""
        body = wire.read(wire.Metrics, request.data)
        instance = instance_of(body, request, sdk_type="frontend")
        report = metrics_report(body, environment_of(request), instance)
        report_batcher.submit(report, token=token_of(request).pk)
        return HttpResponse("OK", content_type="text/plain")
