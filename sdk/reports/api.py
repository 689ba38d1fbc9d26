"""/api/client/metrics, /metrics/bulk and /register: reports of SDKs and edge proxies, and impact metrics.

Validates the impact metrics of a report one by one, so that an invalid one does not affect the others.
"""

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from pydantic import Field
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.errors import NoAccess, ValidationError
from flagadmin.core.http.openapi import refusal
from groups.authentication import ApiRequest
from groups.models import ApiToken
from groups.tokens import note_uses
from projects.applications.impact_metrics import (
    CONTENT_TYPE,
    HISTOGRAM,
    Origin,
    Sample,
    Samples,
    format_impact_metrics,
    make_series,
)
from projects.applications.sdk_versions import FLAG_COUNT, IMPACT
from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport
from sdk import schemas as wire
from sdk.base import ClientView, get_environment, get_token, projects_of
from sdk.reports.batcher import ID_HEADER, count_once, report_batcher

ACCEPTED = OpenApiResponse(description="Stored. No body.")
REGISTER_EXAMPLE = {
    "appName": "web-shop",
    "instanceId": "web-shop-7d9f",
    "sdkVersion": "unleash-node-sdk:6.12.1",
    "strategies": ["default", "flexibleRollout"],
    "started": "2026-11-21T03:26:33.451Z",
    "interval": 60000,
    "platformName": "node",
    "platformVersion": "22.23.3",
    "specVersion": "5.2.0",
}


class RegisterView(ClientView):
    @extend_schema(
        operation_id="registerClientApplication",
        request=wire.Registration,
        responses={202: ACCEPTED},
        examples=[OpenApiExample("Registration", value=REGISTER_EXAMPLE, request_only=True)],
    )
    def post(self, request: ApiRequest) -> Response:
        """Register an SDK that has started. The answer comes once it is stored.

        The environment is that of the token.
        """
        body = wire.read(wire.Registration, request.data)
        report = UsageReport()
        place = InstanceKey(body.appName, str(body.instanceId), get_environment(request))
        report.add_instance(place, make_instance(body, request), body.strategies)
        report_batcher.submit(report, token=get_token(request).pk)
        return Response(status=202)


def make_instance(body: wire.Platform, request: ApiRequest | None = None, *, sdk_type: str = "") -> Instance:
    """The SDK's information about itself, from the body or (name and version) the ``unleash-sdk`` header."""
    sdk = body.sdkVersion or (wire.read_sdk_header(request.headers) if request else "")
    return Instance(
        sdk,
        sdk_type,
        body.platformName or "",
        body.platformVersion or "",
        body.specVersion or "",
        body.yggdrasilVersion or "",
        ":".join(filter(None, (body.sdkFlavor, body.sdkFlavor and body.sdkFlavorVersion))),
    )


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

        Of unknown flags, only the names are stored, for two days. Invalid impact metrics, and invalid counts
        of flags beside valid ones, are ignored and counted as ignored.
        """
        report = read_metrics_report(request)
        report_batcher.submit(report, token=get_token(request).pk)
        return Response(status=202)


def read_metrics_report(request: ApiRequest, *, sdk_type: str = "") -> UsageReport:
    """Raises ValidationError."""
    body, invalid = wire.read_metrics(request.data)
    environment, instance = get_environment(request), make_instance(body, request, sdk_type=sdk_type)
    report = UsageReport(invalid=Counter({(FLAG_COUNT, 0): invalid}))
    report.add_instance(InstanceKey(body.appName, str(body.instanceId), environment), instance)
    if metrics := body.impactMetrics:
        origin = read_origin(get_token(request))
        report.impact, report.invalid[IMPACT, 0] = read_samples(metrics, environment, origin, body.appName)
    if body.bucket:
        now = timezone.now()
        for flag, counts in body.bucket.toggles.items():
            use = FlagUse(body.appName, flag, environment)
            report.add_count(
                use, body.bucket.stop, Count(counts.yes, counts.no, dict(counts.variants)), now=now
            )
    return report


def read_origin(token: ApiToken) -> Origin:
    """Reads the projects of the token, which are stored with its reported numbers."""
    projects = projects_of(token)
    return Origin(
        token.kind == ApiToken.Kind.FRONTEND, ("*",) if projects is None else tuple(sorted(projects))
    )


class BulkMetricsView(ClientView):
    body_limit = max(settings.BODY_LIMIT, 4_000_000)  # for the maximum number of metrics in a report

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

        The `origin` of an impact metric is the token that an SDK reported it with at the proxy:
        `{"type": "frontend", "projects": ["web"]}`. Without one, it counts as reported with this token.

        Entries for other environments than the token's are not stored. Tokens used at the proxy count as
        used; unknown tokens are ignored.

        Valid entries are stored even if others are invalid and the response is 400.

        A report with an id in `Flagadmin-Report-Id` is stored once, however often it is sent within 30 days.
        """
        lists = wire.read(wire.BulkLists, request.data)
        applications, problems = wire.read_each(wire.BulkApplication, lists.applications, "applications")
        metrics, more = wire.read_each(wire.BulkMetric, lists.metrics, "metrics")
        environment = get_environment(request)
        report = _read_bulk_report(applications, metrics, environment, timezone.now())
        if impact := lists.impactMetrics:
            origin = read_origin(get_token(request))
            report.impact, report.invalid[IMPACT, 0] = read_passed_on(impact, environment, origin)
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
            count = Count(metric.yes, metric.no, dict(metric.variants))
            report.add_count(use, metric.timestamp, count, now=now)
    return report


class ImpactMetricsView(APIView):
    tags = ("Metrics",)

    @extend_schema(
        operation_id="getImpactMetrics",
        responses={(200, "text/plain"): OpenApiResponse(str, description="Prometheus text format.")},
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        """Get the counters, gauges and histograms that applications recorded.

        For callers who can read all projects.
        """
        if not request.user.reads_all_projects:
            raise NoAccess("Impact metrics are of all projects, and you cannot read all of them.")
        return HttpResponse(format_impact_metrics(), content_type=CONTENT_TYPE)


MAX_LABEL_LENGTH = 100
MAX_BUCKETS, MAX_SAMPLES = 50, 1000
MAX_SERIES, MAX_PASSED_ON = 1_000, 5_000
"""The maximum number of samples in a report of an SDK, and of a proxy: storing a thousand takes a tenth of a second."""
MAX_NUMBER = 1e100
"""PostgreSQL refuses sums and averages beyond the range of a float."""

Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL_LENGTH)]
Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]


class Bucket(wire.Body):
    le: Annotated[float, Field(allow_inf_nan=True)]
    count: wire.CountNumber


class SampleBody(wire.Body):
    labels: Annotated[
        dict[Label, Annotated[str, Field(max_length=wire.MAX_WORD_LENGTH)]], wire.empty_as(dict)
    ] = Field(default_factory=dict, max_length=wire.MAX_LABELS)
    value: Number = 0.0
    count: wire.CountNumber = 0
    sum: Number = 0.0
    buckets: Annotated[list[Bucket], wire.empty_as(list)] = Field(
        default_factory=list, max_length=MAX_BUCKETS
    )


class ImpactMetric(wire.Body):
    """The values that an application has recorded since its last report."""

    name: wire.Name
    help: Annotated[str, Field(max_length=1000), wire.empty_as(str)] = ""
    type: Literal["counter", "gauge", "histogram"]
    samples: Annotated[list[SampleBody], wire.empty_as(list)] = Field(max_length=MAX_SAMPLES)


class OriginBody(wire.Body):
    """The token with which an SDK reported to a proxy."""

    type: Literal["backend", "frontend"]
    projects: Annotated[list[wire.Name], Field(min_length=1, max_length=500)]


class PassedOn(ImpactMetric):
    origin: OriginBody | None = None


def read_samples(
    metrics: list[Any], environment: str, origin: Origin, application: str
) -> tuple[Samples, int]:
    """The samples of an SDK by series, and the number of ignored metrics and samples.

    The environment and the origin are the token's.
    """
    good, _ = wire.read_each(ImpactMetric, metrics, "impactMetrics")
    reported = [(metric, sample, origin) for metric in good for sample in metric.samples]
    samples, invalid = _add_up(reported[:MAX_SERIES], environment, application)
    return samples, invalid + len(metrics) - len(good) + max(0, len(reported) - MAX_SERIES)


def read_passed_on(metrics: list[Any], environment: str, origin: Origin) -> tuple[Samples, int]:
    """Like `read_samples`, for a proxy, whose metrics each name the token that reported them."""
    good, _ = wire.read_each(PassedOn, metrics, "impactMetrics")
    reported = [
        (
            metric,
            sample,
            origin.narrow(metric.origin.type, metric.origin.projects) if metric.origin else origin,
        )
        for metric in good
        for sample in metric.samples
    ]
    samples, invalid = _add_up(reported[:MAX_PASSED_ON], environment)
    return samples, invalid + len(metrics) - len(good) + max(0, len(reported) - MAX_PASSED_ON)


def _add_up(
    reported: Iterable[tuple[ImpactMetric, SampleBody, Origin]], environment: str, application: str = ""
) -> tuple[Samples, int]:
    samples: Samples = {}
    invalid = 0
    for metric, body, origin in reported:
        sample = _sample(metric, body)
        if sample is None:
            invalid += 1
            continue
        labels = ({"appName": application} if application else {}) | body.labels
        series = make_series(metric.name, labels, origin, environment=environment)
        samples[series] = samples[series].add(sample) if series in samples else sample
    return samples, invalid


def _sample(metric: ImpactMetric, reported: SampleBody) -> Sample | None:
    if metric.type == HISTOGRAM:
        bounds = [bucket.le for bucket in reported.buckets]
        if any(map(math.isnan, bounds)) or max(Counter(bounds).values(), default=0) > 1:
            return None
        buckets = {str(bucket.le): bucket.count for bucket in reported.buckets}
        return Sample(metric.type, metric.help, reported.sum, reported.count, buckets)
    if metric.type == "counter" and reported.value < 0:
        return None
    return Sample(metric.type, metric.help, reported.value)
