"""Request bodies of views: size limits and strict JSON parsing. Also JSON rendering."""

from io import BytesIO
from threading import BoundedSemaphore, Lock
from typing import Any

import orjson
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import resolve
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.core.errors import AppError, PayloadTooLarge
from flagadmin.core.http.error_responses import make_error_response
from flagadmin.core.http.json_bodies import (
    MANY_VALUES,
    Bounds,
    inflate,
    read_json,
    too_large,
    too_many_bodies,
)
from flagadmin.core.http.middleware import GetResponse, make_canonical_path

MAX_LARGE_INFLATED = 4
"""Bodies above the ordinary limit that a worker holds at once after decompressing them. Bodies sent without
compression are counted while they are received (`flagadmin.core.server.receiving`).
"""
_large_inflated = BoundedSemaphore(MAX_LARGE_INFLATED)
_inflating = (
    Lock()
)  # large bodies one after another: several at once would take the processor from small requests
ORJSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


class BoundedBodyMiddleware:
    """Reads and decompresses a body before it is parsed, up to the view's ``body_limit`` (bytes), and frees it after.

    Django's streaming upload handlers process multipart uploads of the console; only their declared length is checked
    here.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            return self.get_response(request)
        finally:
            free_body(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        try:
            bound_body(request, limit_of(view))
        except AppError as error:
            return make_error_response(request, error)
        return None


def limit_of(view: Any) -> int:
    """The body limit of a view function, in bytes: from its action, its class, or the general one."""
    owner = getattr(view, "cls", None) or getattr(view, "view_class", view)
    of_action = getattr(view, "initkwargs", {}).get("body_limit")
    return of_action or getattr(owner, "body_limit", None) or settings.BODY_LIMIT


def limit_at(path: str) -> int:
    """The body limit of the view at a path, in bytes."""
    try:
        return limit_of(resolve(make_canonical_path(path)).func)
    except Http404:
        return settings.BODY_LIMIT


def bound_body(request: HttpRequest, limit: int) -> None:
    """Replaces the stream with the whole decompressed body. Raises PayloadTooLarge beyond ``limit`` bytes."""
    declared = int(request.META.get("CONTENT_LENGTH") or 0)
    if request.content_type == "application/x-www-form-urlencoded":
        # Parsing such a form takes many times its size in memory. Forms with files are multipart instead.
        limit = min(limit, settings.BODY_LIMIT)
    if declared > limit:
        raise too_large(limit)
    if request.content_type == "multipart/form-data" or not declared:
        return
    body = request.read(declared)
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        body = _inflate(request, body, limit)
        del request.META["HTTP_CONTENT_ENCODING"]
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._stream = BytesIO(body)
    request._read_started = False  # type: ignore[attr-defined]


def _inflate(request: HttpRequest, body: bytes, limit: int) -> bytes:
    """Decompresses the body. Raises ServiceUnavailable if other large bodies already fill the memory for them."""
    encoding = request.headers["Content-Encoding"].lower()
    try:
        return inflate(body, encoding, min(limit, settings.BODY_LIMIT))
    except PayloadTooLarge:
        if limit <= settings.BODY_LIMIT:
            raise
    if not _large_inflated.acquire(blocking=False):
        raise too_many_bodies()
    request._holds_large_body = True  # type: ignore[attr-defined]
    with _inflating:
        return inflate(body, encoding, limit)


def free_body(request: HttpRequest) -> None:
    """Frees the body, which a reference cycle (a request's messages and user refer to it) would keep in memory."""
    if vars(request).pop("_holds_large_body", False):
        _large_inflated.release()
    for stream in (getattr(request, "_stream", None), request.META.get("wsgi.input")):
        if isinstance(stream, BytesIO):
            stream.close()


class FreedBodies:
    """A mixin for DRF views that frees request and response bodies, which may be megabytes, once the response is sent.

    DRF links a view, its request and its response in reference cycles. Without this, they would stay until the next
    garbage collection, which is rare (``flagadmin.core.server.memory``).
    """

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]
        vars(self).pop("head", None)  # Django sets it to the bound method `get`
        if not isinstance(response, Response):
            request.parser_context.clear()
            return response
        rendering = response.renderer_context  # type: ignore[attr-defined]

        def free(_: Any) -> None:
            request.parser_context.clear()
            rendering.clear()

        response.add_post_render_callback(free)
        return response


class OrjsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        if data is None:
            return b""
        if isinstance(data, bytes):  # already rendered by the view
            return data
        return orjson.dumps(data, default=str, option=ORJSON_OPTIONS)


class StrictJSONParser(BaseParser):
    """Refuses malformed JSON, NaN, lone surrogates and NUL characters."""

    media_type = "application/json"
    bounds = Bounds()

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return read_json(stream.read(), self.bounds)


class ManyValuesParser(StrictJSONParser):
    """A parser for bodies with thousands of objects."""

    bounds = MANY_VALUES


class AlwaysJson(DefaultContentNegotiation):
    """Responds with JSON regardless of the Accept header, also for errors."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type
