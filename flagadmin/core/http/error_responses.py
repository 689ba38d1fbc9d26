"""Converts exceptions to responses, for DRF views, plain Django views and middleware."""

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.core import exceptions as django_errors
from django.db import Error as DatabaseFailure
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework import exceptions as drf_errors
from rest_framework.response import Response

from flagadmin.core import errors
from flagadmin.core.change_checks import Refusal
from flagadmin.core.db.transactions import is_schema_incomplete
from flagadmin.core.errors import AppError, Problem, join_path
from flagadmin.core.http import health
from flagadmin.core.http.error_formats import formats
from flagadmin.core.http.logs import drop_secrets, request_id

log = logging.getLogger("flagadmin.http")


# Errors ---------------------------------------------------------------------------------------------------


_API_PREFIXES = ("/api/", "/auth/", "/edge/", "/internal-backstage/", "/invite/")


def is_api(request: HttpRequest) -> bool:
    return is_api_path(request.path)


def is_api_path(path: str) -> bool:
    return path.startswith((*_API_PREFIXES, *formats)) or path == "/api"


def as_app_error(exc: BaseException) -> AppError:
    """The AppError for an exception; UnknownError for an unexpected one."""
    if isinstance(exc, AppError):
        return exc
    for kinds, convert in _CONVERSIONS:
        if isinstance(exc, kinds):
            return convert(exc)
    return errors.UnknownError()


def _not_allowed(exc: Any) -> AppError:
    return errors.MethodNotAllowed(str(exc.detail))


def _validation(exc: Any) -> AppError:
    return errors.ValidationError.of(problems_of(exc.detail))


def _unsupported(exc: Any) -> AppError:
    return errors.ContentTypeNotAccepted(f"Send application/json. {exc.detail}")


def _programming(exc: Any) -> AppError:
    if not is_schema_incomplete(exc):
        return errors.UnknownError()
    return errors.ServiceUnavailable(
        "The database lacks tables of this version of flagadmin: it is being restored, or another version set it up."
    )


_CONVERSIONS: list[tuple[Any, Callable[[Any], AppError]]] = [
    (
        (drf_errors.NotAuthenticated, drf_errors.AuthenticationFailed),
        lambda _: errors.AuthenticationRequired(),
    ),
    (
        (drf_errors.PermissionDenied, django_errors.PermissionDenied),
        lambda exc: errors.NoAccess(str(exc) or None),
    ),
    ((Http404, drf_errors.NotFound), lambda _: errors.NotFound()),
    (drf_errors.MethodNotAllowed, _not_allowed),
    (drf_errors.UnsupportedMediaType, _unsupported),
    (drf_errors.ValidationError, _validation),
    (drf_errors.ParseError, lambda exc: errors.ValidationError(str(exc.detail))),
    (
        drf_errors.Throttled,
        lambda exc: errors.TooManyRequests(headers={"Retry-After": str(int(exc.wait or 1))}),
    ),
    (Refusal, lambda exc: exc.as_app_error()),
    (django_errors.RequestDataTooBig, lambda _: errors.PayloadTooLarge("The body is too large.")),
    (django_errors.TooManyFieldsSent, lambda _: errors.PayloadTooLarge("The form has too many fields.")),
    (
        django_errors.DisallowedHost,
        lambda _: errors.ValidationError(
            "This host name is not allowed. FLAGADMIN_ALLOWED_HOSTS lists the allowed names."
        ),
    ),
    (
        (django_errors.BadRequest, django_errors.SuspiciousOperation),
        lambda _: errors.ValidationError("Bad request."),
    ),
    ((OperationalError, InterfaceError), health.unavailable),
    (ProgrammingError, _programming),
]


def problems_of(detail: Any, path: str = "") -> Iterator[Problem]:
    """DRF's nested error detail, flattened to problems with JSON paths ("values[2].name")."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            yield from problems_of(value, path if key == "non_field_errors" else join_path(path, key))
    elif isinstance(detail, list):
        for index, item in enumerate(detail):
            nested = isinstance(item, dict | list)
            yield from problems_of(item, f"{path}[{index}]" if nested else path)
    else:
        yield Problem(path, str(detail))


def make_error_response(request: HttpRequest, exc: BaseException) -> HttpResponse:
    """The response to a failed request: an error record for the API, a page elsewhere."""
    error = as_app_error(exc)
    if is_api(request):
        body = orjson.dumps(log_and_render(request.path, error, exc))
        response = HttpResponse(body, status=error.status, content_type="application/json")
    else:
        record = log_and_record(error, exc)
        place = request.resolver_match.kwargs if request.resolver_match else {}
        # Server errors are shown without the navigation, because it needs the database, which may have failed.
        context = {
            "error": error,
            "error_id": record["id"],
            "bare": error.status >= 500,
            "back": find_previous_page(request),
            "wanted": place.get("name") or request.path.rstrip("/").rpartition("/")[2],
        }
        try:
            response = render(request, "console/error.html", context, status=error.status)
        except DatabaseFailure as failure:  # raised by the navigation
            return make_error_response(request, failure)
    for header, value in error.headers.items():
        response[header] = value
    return response


def find_previous_page(request: HttpRequest) -> str:
    """The URL of the page of this installation that linked here; "" if there is none."""
    came_from = request.headers.get("Referer", "")
    try:
        is_same_site = urlsplit(came_from).netloc == request.get_host()
    except (ValueError, django_errors.DisallowedHost):
        return ""
    return came_from if is_same_site and came_from != request.build_absolute_uri() else ""


def log_and_record(error: AppError, exc: BaseException | None = None) -> dict[str, Any]:
    """Logs the error under the request's id, so that one id finds the answer, the log and the audit events."""
    error_id = request_id.get() or uuid.uuid4().hex
    if isinstance(error, errors.ServiceUnavailable) and not isinstance(error, errors.MaintenanceMode):
        # Tracebacks of a hundred requests a second would hide the cause of an outage.
        log.warning("%s %s: %s%s", error.name, error_id, error.message, _first_line(exc, error))
    elif error.status >= 500 and not isinstance(error, errors.MaintenanceMode):
        log.error("%s %s", error.name, error_id, exc_info=exc)
    else:
        log.info("%s %s: %s", error.name, error_id, error.message)
    return error.record(error_id)


def _first_line(exc: BaseException | None, error: AppError) -> str:
    """The first line of the exception that ``error`` stands for, in parentheses; "" if there is none."""
    lines = str(exc).splitlines() if exc is not error and exc is not None else []
    return f" ({lines[0]})" if lines else ""


def log_and_render(path: str, error: AppError, exc: BaseException | None = None) -> dict[str, Any]:
    """Logs the error. The body is the error record, unless the API at this path has its own format."""
    record = log_and_record(error, exc)
    own = next((maker for prefix, maker in formats.items() if path.startswith(prefix)), None)
    return record if own is None else own(path, error, record["id"])


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER: renders exceptions of API views as error records, or in their protocol's format."""
    # Imported late: DRF's views read the settings, which refer to this module.
    from rest_framework.views import set_rollback

    set_rollback()
    error = as_app_error(exc)
    headers = dict(error.headers)
    if isinstance(exc, drf_errors.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    body = log_and_render(context["request"].path, error, exc)
    return Response(body, status=error.status, headers=headers)


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    return make_error_response(request, exception)


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    return make_error_response(request, exception)


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    return make_error_response(
        request, errors.NotFound(f"Page not found. No page at {drop_secrets(request.path)}.")
    )


def handler500(request: HttpRequest) -> HttpResponse:
    return make_error_response(request, errors.UnknownError())


# Middleware ---------------------------------------------------------------------------------------------------
