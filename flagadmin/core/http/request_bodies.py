"""Request bodies: size limits, decompression and strict JSON parsing. Also JSON rendering."""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
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

from flagadmin.core import errors
from flagadmin.core.errors import AppError
from flagadmin.core.http.error_responses import error_response
from flagadmin.core.http.middleware import GetResponse, canonical_path

ORJSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


class BoundedBodyMiddleware:
    """Reads and decompresses a body before it is parsed, up to the view's ``body_limit`` (bytes).

    Multipart uploads of the console are left to Django's streaming upload handlers; their declared length
    is checked here.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        try:
            bound_body(request, limit_of(view))
        except AppError as error:
            return error_response(request, error)
        return None


def limit_of(view: Any) -> int:
    """The body limit of a view function, in bytes: of its action, its class, or the general one."""
    owner = getattr(view, "cls", None) or getattr(view, "view_class", view)
    of_action = getattr(view, "initkwargs", {}).get("body_limit")
    return of_action or getattr(owner, "body_limit", None) or settings.BODY_LIMIT


def limit_at(path: str) -> int:
    """The body limit of the view at a path, in bytes."""
    try:
        return limit_of(resolve(canonical_path(path)).func)
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
        body = inflate(body, request.headers["Content-Encoding"].lower(), limit)
        del request.META["HTTP_CONTENT_ENCODING"]
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._stream = BytesIO(body)
    request._read_started = False  # type: ignore[attr-defined]


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """The body decompressed from gzip or deflate. Raises PayloadTooLarge beyond ``limit`` bytes of output."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise errors.ContentTypeNotAccepted(
            f"Content-Encoding {encoding} is not accepted. Use gzip, or none."
        )
    decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        inflated = decoder.decompress(body, limit + 1)
    except zlib.error as exc:
        raise errors.ValidationError("The body is not valid gzip data.") from exc
    if len(inflated) > limit:
        raise too_large(limit)
    if not decoder.eof:
        raise errors.ValidationError("The body is not valid gzip data: it ends too early.")
    if decoder.unused_data:
        raise errors.ValidationError("The body is not valid gzip data: something follows its end.")
    return inflated


def too_large(limit: int) -> AppError:
    size = f"{limit / 1_000_000:g} MB" if limit >= 1_000_000 else f"{limit:,} bytes"
    return errors.PayloadTooLarge(f"The body is larger than the {size} accepted here.")


class FreedBodies:
    """A mixin for DRF views: request and response bodies, which may be megabytes, are freed when the response was sent.

    DRF links a view, its request and its response in reference cycles. Without this they would stay until the next
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """The general limits of a JSON document. Fields have their own in addition."""

    items: int = 10_000  # of one list
    members: int = 10_000  # of one object
    values: int = 200_000  # of the whole document
    depth: int = 32


class StrictJSONParser(BaseParser):
    """Refuses malformed JSON, NaN, lone surrogates and NUL characters."""

    media_type = "application/json"
    bounds = Bounds()

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        body, bounds = stream.read(), self.bounds
        check_values(body, bounds)
        data = parse_json(body)
        check_bounds(data, bounds)
        return data


class ManyValuesParser(StrictJSONParser):
    """For bodies with thousands of objects."""

    bounds = Bounds(values=1_000_000)


def parse_json(body: bytes) -> Any:
    """Raises ValidationError with the position of the error."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise errors.ValidationError(f"The body is not valid JSON: {exc}.") from exc
    # PostgreSQL text cannot contain NUL. Checked here, the error can name its path.
    if b"\\u0000" in body and (path := _place_of(data, _has_nul)) is not None:
        raise errors.ValidationError.at(path, "a NUL character (\\u0000) is not allowed")
    return data


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)


def check_values(body: bytes, bounds: Bounds) -> None:
    """Raises ValidationError for too many values, by counting commas before the body is parsed."""
    if body.count(b",") >= bounds.values and _STRING.sub(b"", body).count(b",") >= bounds.values:
        raise _too_many_values(bounds)


def _too_many_values(bounds: Bounds) -> AppError:
    return errors.ValidationError(f"The body must have at most {bounds.values:,} values.")


def check_bounds(data: Any, bounds: Bounds) -> None:
    """Raises ValidationError for a document beyond these bounds. Walks it level by level."""
    level, values = [data], 1
    for _ in range(bounds.depth):
        inner: list[Any] = []
        for value in level:
            if type(value) is list:
                if len(value) > bounds.items:
                    raise _too_many(data, value, f"must have at most {bounds.items:,} items")
                inner += value
            elif type(value) is dict:
                if len(value) > bounds.members:
                    raise _too_many(data, value, f"must have at most {bounds.members:,} members")
                inner += value.values()
        values += len(inner)
        if values > bounds.values:
            raise _too_many_values(bounds)
        if not inner:
            return
        level = inner
    raise errors.ValidationError(f"The body must be nested at most {bounds.depth} levels deep.")


def _too_many(data: Any, collection: list | dict, allowed: str) -> AppError:
    path = _place_of(data, lambda value: value is collection) or ""
    return errors.ValidationError.at(path, f"{allowed}, not {len(collection):,}")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    return isinstance(value, dict) and any("\0" in key for key in value)


def _place_of(data: Any, sought: Callable[[Any], bool]) -> str | None:
    """The path of the first value that ``sought`` accepts.

    Not recursive: bodies may be nested deeper than the stack.
    """
    waiting = [("", data)]
    while waiting:
        path, value = waiting.pop()
        if sought(value):
            return path
        if isinstance(value, dict):
            inner = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
            waiting += reversed(inner)
        elif isinstance(value, list):
            waiting += reversed([(f"{path}[{index}]", item) for index, item in enumerate(value)])
    return None


class AlwaysJson(DefaultContentNegotiation):
    """Responds with JSON whatever the Accept header, also for errors."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type
