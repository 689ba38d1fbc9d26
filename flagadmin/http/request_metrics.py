"""Counts requests by route, and answers /metrics."""

import hmac
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from flagadmin.metrics import Counter, Histogram
from flagadmin.metrics.instruments import DIRECTORY, sample
from flagadmin.metrics.text import CONTENT_TYPE, Exposition

BEGUN = "flagadmin.begun"  # in the WSGI environment: when the request had arrived, of perf_counter()
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

REQUESTS = Counter("flagadmin_requests_total", "Requests answered.", "route", "method", "status")
SECONDS = Histogram(
    "flagadmin_request_seconds",
    "Time from the arrival of a whole request to its answer, waiting for a thread included.",
    "route",
    "method",
)


def count_request(route: str, method: str, status: int, seconds: float) -> None:
    """``route`` is a URL pattern without the first slash: there are only so many of them."""
    if method not in METHODS:
        method = "other"
    REQUESTS.inc(route, method, str(status))
    SECONDS.observe(seconds, route, method)


class RequestMetricsMiddleware:
    """Counts what Django answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        begun = request.META.get(BEGUN) or perf_counter()
        response = self.get_response(request)
        count_request(_route_of(request), str(request.method), response.status_code, perf_counter() - begun)
        return response


def _route_of(request: HttpRequest) -> str:
    if request.resolver_match is not None:
        return str(request.resolver_match.route)
    return "static" if request.path.startswith(settings.STATIC_URL) else "none"


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """What all processes have counted. 404 without FLAGADMIN_METRICS_TOKEN, 401 without that token."""
    if not settings.METRICS_TOKEN or DIRECTORY not in os.environ:
        raise Http404
    expected = f"Bearer {settings.METRICS_TOKEN}".encode()
    if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    sample()
    text = _exposition(Path(os.environ[DIRECTORY])).text()
    return HttpResponse(text, content_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})


_exposition = cache(Exposition)
