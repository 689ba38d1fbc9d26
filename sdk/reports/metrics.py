"""POST /api/client/metrics and /metrics/bulk: usage metrics from SDKs and edge proxies."""

from collections import Counter
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.openapi import refusal
from groups.authentication import ApiRequest
from groups.tokens import note_uses
from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport
from sdk import schemas as wire
from sdk.base import ClientView, get_environment, get_token
from sdk.reports.batcher import report_batcher
from sdk.reports.impact_metrics import read_samples
from sdk.reports.once import ID_HEADER, count_once
from sdk.reports.register import ACCEPTED, make_instance

EXAMPLE = {
    "appName": "web-shop",
    "instanceId": "web-shop-7d9f",
    "bucket": {
        "start": "2026-11-21T03:26:40.651Z",
        "stop": "2026-11-21T03:27:40.659Z",
        "toggles": {"new-checkout": {"yes": 8, "no": 1, "variants": {"blue": 5, "red": 3}}},
    },
}
BULK_EXAMPLE = {
    "applications": [
        {"appName": "web-shop", "instanceId": "web-shop-7d9f", "sdkVersion": "unleash-node-sdk:6.12.1"}
    ],
    "metrics": [
        {
            "featureName": "new-checkout",
            "appName": "web-shop",
            "environment": "production",
            "timestamp": "2026-11-21T03:00:00.000Z",
            "yes": 8,
            "no": 1,
        }
    ],
}


class MetricsView(ClientView):
    @extend_schema(
        operation_id="registerClientMetrics",
        request=wire.Metrics,
        responses={202: ACCEPTED},
        examples=[OpenApiExample("Metrics", value=EXAMPLE, request_only=True)],
    )
    def post(self, request: ApiRequest) -> Response:
        """Report metrics. The answer comes once they are stored.

        The environment is that of the token; flags may be of any project.

        Of unknown flags, only the names are stored, for two days. Invalid impact metrics are
        ignored and counted as ignored.
        """
        body = wire.read(wire.Metrics, request.data)
        report = read_metrics_report(body, get_environment(request), make_instance(body, request))
        report_batcher.submit(report, token=get_token(request).pk)
        return Response(status=202)


def read_metrics_report(body: wire.Metrics, environment: str, instance: Instance) -> UsageReport:
    report = UsageReport()
    report.add_instance(InstanceKey(body.appName, str(body.instanceId), environment), instance)
    count_impact(report, body.impactMetrics, environment, body.appName)
    if body.bucket:
        now = timezone.now()
        for flag, counts in body.bucket.toggles.items():
            use = FlagUse(body.appName, flag, environment)
            report.add_count(
                use, body.bucket.stop, Count(counts.yes, counts.no, dict(counts.variants)), now=now
            )
    return report


def count_impact(
    report: UsageReport, metrics: list[Any] | None, environment: str, application: str = ""
) -> None:
    report.impact, invalid = read_samples(metrics or [], environment, application)
    report.invalid_impact = Counter({0: invalid})


class BulkMetricsView(ClientView):
    body_limit = max(settings.BODY_LIMIT, 4_000_000)  # for all the metrics that one report may have

    @extend_schema(
        operation_id="clientBulkMetrics",
        parameters=[
            OpenApiParameter(
                ID_HEADER,
                str,
                OpenApiParameter.HEADER,
                description="An id of this report, of the client's choice.",
            )
        ],
        request=wire.BulkMetrics,
        responses={
            202: ACCEPTED,
            400: refusal(400, "Some entries are not valid, listed here; all others are stored."),
        },
        examples=[OpenApiExample("Bulk metrics", value=BULK_EXAMPLE, request_only=True)],
    )
    def post(self, request: ApiRequest) -> Response:
        """Report metrics of an edge proxy.

        Entries for other environments than the token's are not stored. Tokens used at the proxy count as
        used; unknown tokens are ignored.

        Valid entries are stored even if others are invalid and the response is 400.

        A report with an id in `Flagadmin-Report-Id` is stored once, however often it is sent within 30 days.
        """
        lists = wire.read(wire.BulkLists, request.data)
        applications, problems = wire.read_each(wire.BulkApplication, lists.applications, "applications")
        metrics, more = wire.read_each(wire.BulkMetric, lists.metrics, "metrics")
        report = _read_bulk_report(applications, metrics, get_environment(request), timezone.now())
        count_impact(report, lists.impactMetrics, get_environment(request))
        if identifier := request.headers.get(ID_HEADER):
            count_once(report, identifier, token=get_token(request).pk)
        else:
            report_batcher.submit(report, token=get_token(request).pk)
        note_uses(lists.seenTokens or ())
        if problems or more:
            raise ValidationError.of(problems + more)
        return Response(status=202)


def _read_bulk_report(
    applications: list[wire.BulkApplication], metrics: list[wire.BulkMetric], environment: str, now: datetime
) -> UsageReport:
    report = UsageReport()
    for application in applications:
        if (application.environment or environment) == environment:
            place = InstanceKey(application.appName, str(application.instanceId), environment)
            instance = make_instance(application, sdk_type=application.sdkType or "")
            report.add_instance(place, instance, application.strategies or ())
    for metric in metrics:
        if (metric.environment or environment) == environment:
            use = FlagUse(metric.appName, metric.featureName, environment)
            count = Count(metric.yes, metric.no, dict(metric.variants or {}))
            report.add_count(use, metric.timestamp, count, now=now)
    return report
