"""Responses that are compressed or not modified (RFC 9110, 13.1.2), and the timestamps in them."""

from datetime import UTC, datetime
from typing import Protocol, overload

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from rest_framework.request import Request

from flagadmin.core.http import request_headers
from flagadmin.core.http.request_headers import is_listed, read_etags


class Encodings(Protocol):
    """An answer in both encodings."""

    @property
    def body(self) -> bytes: ...
    @property
    def gzipped(self) -> bytes: ...


def make_json_response(request: HttpRequest | Request, answer: Encodings) -> HttpResponse:
    """A JSON response with ``gzipped`` if the client accepts gzip, otherwise with ``body``. Varies by encoding."""
    if accepts_gzip(request):
        response = HttpResponse(answer.gzipped, content_type="application/json")
        response["Content-Encoding"] = "gzip"
    else:
        response = HttpResponse(answer.body, content_type="application/json")
    response["Vary"] = "Accept-Encoding"
    return response


def accepts_gzip(request: HttpRequest | Request) -> bool:
    return request_headers.accepts_gzip(request.headers.get("Accept-Encoding", ""))


def is_known(request: HttpRequest | Request, etag: str) -> bool:
    """Whether If-None-Match contains this ETag, by weak comparison."""
    return is_listed(request.headers.get("If-None-Match", ""), etag)


def read_known_etags(request: HttpRequest | Request) -> list[str]:
    """The ETags in If-None-Match as strong ones, or ``["*"]``."""
    return read_etags(request.headers.get("If-None-Match", ""))


def not_modified(etag: str) -> HttpResponse:
    """A 304 without a content type: a cache may copy headers, and would serve its flags with that type."""
    return HttpResponseNotModified(headers={"ETag": etag})


@overload
def iso(moment: datetime) -> str: ...
@overload
def iso(moment: None) -> None: ...
def iso(moment: datetime | None) -> str | None:
    """``2026-11-21T03:17:02.282Z``: UTC with milliseconds, the format of the reference and its clients.

    Adds microseconds if there are any: a client that sends the time back as ``at`` means exactly that moment.
    """
    if moment is None:
        return None
    precision = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
