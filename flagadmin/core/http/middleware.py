"""Middleware: request ids, security headers, and errors that reach Django.

Counts requests by route, writes the access log, and answers /metrics.
"""

import hmac
import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from pathlib import Path
from random import getrandbits
from time import perf_counter
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.urls import resolve
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from rest_framework.permissions import SAFE_METHODS

from flagadmin.core import errors
from flagadmin.core.db import outages
from flagadmin.core.http.error_responses import is_api, make_error_response
from flagadmin.core.http.logs import request_id
from flagadmin.core.http.request_headers import choose_address
from flagadmin.core.metrics import DIRECTORY, AllProcesses, sample

GetResponse = Callable[[HttpRequest], HttpResponseBase]


CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


_FORWARDED_ID = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")


def choose_request_id(header: str) -> str:
    """The request id for this X-Request-Id header: the same, or a new one if it does not have our form.

    It need not be secret, only unique, and the system's random numbers would cost a system call.
    """
    return header if _FORWARDED_ID.match(header) else f"{getrandbits(128):032x}"


class RequestIdMiddleware:
    """Gives every request an id for its log lines, its audit events and the X-Request-Id header."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        identifier = choose_request_id(request.headers.get("X-Request-Id", ""))
        request.id = identifier  # type: ignore[attr-defined]
        token = request_id.set(identifier)
        try:
            response = self.get_response(request)
        finally:
            request_id.reset(token)
        response["X-Request-Id"] = identifier
        return response


class OutageMiddleware:
    """Marks responses served from memory while the database cannot be reached, with their age.

    Read requests continue while the database's standby is missing.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        outages.begin_request()
        setattr(connection, "is_reading", request.method in SAFE_METHODS)  # noqa: B010 - of our own backend
        response = self.get_response(request)
        if response.status_code < 400 and (status := outages.get_cache_status()):
            response["Cache-Status"] = status
        return response


class SecurityHeadersMiddleware:
    """Adds a strict content security policy and ``no-store`` to responses without their own."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class LengthMiddleware(CommonMiddleware):
    """Django's middleware, but without a length on 304 responses: caches would apply it to their stored body."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response = super().process_response(request, response)
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            del response.headers["Content-Length"]
        return response


API_PATHS = (
    "/api/admin/",
    "/api/client/",
    "/api/frontend/",
    "/api/proxy/",
    "/api/signals/",
    "/auth/",
    "/edge/",
    "/invite/",
    "/ofrep/",
    "/scim/",
)


def make_canonical_path(path: str) -> str:
    """Drops superfluous slashes of an API path: at its end, and after a base URL that ends with one.

    Keeps the slashes of a path parameter, such as the tag "x/", even after a base URL that ends with one.
    """
    if not path.endswith("/") and "//" not in path:
        return path
    path_from_root = f"/{path.lstrip('/')}"
    canonical = re.sub("/+", "/", path_from_root).rstrip("/")
    if not f"{canonical}/".startswith(API_PATHS):
        return path
    for candidate in (path_from_root, re.sub("//+", "/", path_from_root, count=1)):
        with suppress(Http404):
            if any("/" in str(part) for part in resolve(candidate).kwargs.values()):
                return candidate
    return canonical


REFUSED = "flagadmin.refused"  # in the WSGI environment: the AppError for a body that was not received


class ErrorMiddleware:
    """Converts exceptions of plain views and REFUSED to responses, and refuses NUL characters in URLs."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
            return make_error_response(
                request, errors.ValidationError("The URL must not contain a NUL character.")
            )
        request.path = request.path_info = make_canonical_path(request.path_info)
        if refused := request.META.get(REFUSED):
            return make_error_response(request, refused)
        try:
            return self.get_response(request)
        except (OperationalError, InterfaceError, ProgrammingError) as exc:
            # Wraps the middleware below, because sessions read the database too.
            return make_error_response(request, exc)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, Http404) and settings.DEBUG and not is_api(request):
            return None
        return make_error_response(request, exception)


BEGUN = "flagadmin.begun"  # in the WSGI environment: the request's time of arrival by perf_counter()
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
    """``route`` is a URL pattern without the first slash, so there are only a limited number of values."""
    if settings.METRICS_TOKEN:
        requests, times = _get_children(route, method if method in METHODS else "other", status)
        requests.inc()
        times.observe(seconds)


@cache
def _get_children(route: str, method: str, status: int) -> tuple[Counter, Histogram]:
    """Returns the labeled metrics, cached because ``labels()`` takes three times as long to find them."""
    return REQUESTS.labels(route, method, status), SECONDS.labels(route)


class RequestMetricsMiddleware:
    """Counts and logs Django's responses."""

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
    """Returns the metrics of all processes of `serve`. 404 without FLAGADMIN_METRICS_TOKEN, 401 without that token."""
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
    """Collects the metrics of all processes, or only of this one if `serve` did not start it."""
    directory = os.environ.get(DIRECTORY)
    return AllProcesses(Path(directory)) if directory else REGISTRY


log = logging.getLogger("flagadmin.access")


def log_request(
    *, route: str, method: str, status: int, seconds: float, caller: str, address: str, request_id: str
) -> None:
    """`route` is a URL pattern, as in the metrics; `caller` a kind of token, `session`, or "" for an unknown caller.

    Leaves out URLs, names and the client's own headers: they may contain secrets and personal data.
    """
    fields: dict[str, Any] = {
        "route": route,
        "method": method,
        "status": status,
        "duration_ms": round(seconds * 1000, 1),
        "caller": caller,
        "address": address,
        "requestId": request_id,
    }
    log.info("%s /%s %s", method, route, status, extra=fields)


def get_kind_of_caller(request: HttpRequest) -> str:
    """`admin`, `personal`, `backend` or `frontend` for a token, `session`, or "" without authentication.

    Uses only the view's results, without a query.
    """
    caller = request.__dict__.get("user")
    if (token := getattr(caller, "token", None)) is not None:
        return str(token.kind)
    user = getattr(caller, "user", None) or request.__dict__.get("_cached_user")
    return "session" if getattr(user, "is_authenticated", False) else ""


def get_client_address(request: HttpRequest) -> str:
    """The client's IP address, also of a DRF request."""
    peer, forwarded_for = request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", "")
    return choose_address(peer, forwarded_for, is_behind_proxy=settings.BEHIND_PROXY)
