"""Middleware: request ids, security headers, and errors that reach Django."""

import re
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from random import getrandbits

from django.conf import settings
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.urls import resolve
from rest_framework.permissions import SAFE_METHODS

from flagadmin.core import errors
from flagadmin.core.db import outages
from flagadmin.core.db.standby import is_reading
from flagadmin.core.http.error_responses import is_api, make_error_response
from flagadmin.core.http.logs import request_id

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
        is_reading.set(request.method in SAFE_METHODS)
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
