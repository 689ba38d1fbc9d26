"""Answers with a stored gzip body for clients that accept it."""

from typing import Protocol

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from flagadmin.core.http import request_headers


class Encodings(Protocol):
    """Both forms of an answer."""

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
