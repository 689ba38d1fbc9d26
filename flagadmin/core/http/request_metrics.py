"""Counts requests by route, writes the access log, and answers /metrics."""

import hmac
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from flagadmin.core.http.access_log import get_kind_of_caller, log_request
from flagadmin.core.http.client_address import get_client_address
from flagadmin.core.metrics.collector import AllProcesses
from flagadmin.core.metrics.processes import DIRECTORY
from flagadmin.core.metrics.sampling import sample

BEGUN = "flagadmin.begun"  # in the WSGI environment: when the request had arrived, of perf_counter()
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

disable_created_metrics()  # as in multiprocess mode

REQUESTS = Counter("flagadmin_requests_total", "Requests answered.", ["route", "method", "status"])
SECONDS = Histogram(
    "flagadmin_request_seconds",
    "Time from the arrival of a whole request to its answer, waiting for a thread included.",
    ["route"],
    buckets=(0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
)


def count_request(route: str, method: str, status: int, seconds: float) -> None:
    """``route`` is a URL pattern without the first slash: there are only a limited number of them."""
    if settings.METRICS_TOKEN:
        requests, times = _get_children(route, method if method in METHODS else "other", status)
        requests.inc()
        times.observe(seconds)


@cache
def _get_children(route: str, method: str, status: int) -> tuple[Counter, Histogram]:
    """Returns the labeled metrics, cached because ``labels()`` takes three times as long to find them."""
    return REQUESTS.labels(route, method, status), SECONDS.labels(route)


class RequestMetricsMiddleware:
    """Counts and logs what Django answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        begun = request.META.get(BEGUN) or perf_counter()
        response = self.get_response(request)
        route, method, seconds = _route_of(request), str(request.method), perf_counter() - begun
        count_request(route, method, response.status_code, seconds)
        if settings.ACCESS_LOG:
            log_request(
                route=route,
                method=method,
                status=response.status_code,
                seconds=seconds,
                caller=get_kind_of_caller(request),
                address=get_client_address(request),
                request_id=response.headers.get("X-Request-Id", ""),
            )
        return response


def _route_of(request: HttpRequest) -> str:
    if request.resolver_match is not None:
        return str(request.resolver_match.route)
    return "static" if request.path.startswith(settings.STATIC_URL) else "none"


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Returns what all processes of `serve` count. 404 without FLAGADMIN_METRICS_TOKEN, 401 without that token."""
    if not settings.METRICS_TOKEN:
        raise Http404
    expected = f"Bearer {settings.METRICS_TOKEN}".encode()
    if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    sample()
    return HttpResponse(
        generate_latest(_make_collector()),
        content_type=CONTENT_TYPE_PLAIN_0_0_4,
        headers={"Cache-Control": "no-store"},
    )


@cache
def _make_collector() -> Collector:
    """Collects the metrics of all processes, or of this process alone if it was not started by `serve`."""
    directory = os.environ.get(DIRECTORY)
    return AllProcesses(Path(directory)) if directory else REGISTRY
