"""The OpenAPI document, who may call its operations, and the response for unknown API paths."""

import asyncio
import gzip
import hashlib
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.console.api_docs.callers import Callers, read_callers
from flagadmin.core.errors import AuthenticationRequired, NotFound
from flagadmin.core.http.compression import make_json_response
from flagadmin.core.http.logs import drop_secrets


class OpenApiView(APIView):
    """The OpenAPI document, compressed. Needs no token."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        document = get_openapi_document()
        response = get_conditional_response(request, etag=document.etag) or make_json_response(
            request, document
        )
        response.headers["ETag"], response.headers["Cache-Control"] = document.etag, "no-cache"
        return response


class OpenApiDocument(NamedTuple):
    """``callers``: who may call an operation, by its id. The document itself does not say."""

    body: bytes
    gzipped: bytes
    etag: str
    callers: dict[str, Callers]


PREPARE_AFTER = 10.0  # seconds after a worker's start

_building = Lock()


async def prepare_openapi_document() -> None:
    """A task of each worker's loop: generates the document before somebody waits for it."""
    await asyncio.sleep(PREPARE_AFTER)
    await asyncio.to_thread(get_openapi_document)


def get_openapi_document() -> OpenApiDocument:
    """Generating the document takes a second, so each process does it once."""
    with _building:
        return _make_openapi_document()


@cache
def _make_openapi_document() -> OpenApiDocument:
    generator = SchemaGenerator()
    schema = generator.get_schema(request=None, public=True)
    body = OpenApiJsonRenderer().render(schema, None, {})
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return OpenApiDocument(body, gzip.compress(body, mtime=0), etag, read_callers(generator, schema))


@extend_schema(exclude=True)
class UnknownRoute(APIView):
    """Answers unknown paths below /api/: 401 without a token, 404 with one."""

    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.user is None:
            raise AuthenticationRequired
        raise NotFound(f"{drop_secrets(request.path)} not found.")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise NotFound

    post = put = patch = delete = head = options = get
