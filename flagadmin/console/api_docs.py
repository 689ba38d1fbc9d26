"""The OpenAPI document, the documentation page, and the response for unknown API paths."""

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
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.errors import AuthenticationRequired, NotFound
from flagadmin.core.http.compression import json_response
from flagadmin.core.http.logs import without_secrets
from flagadmin.core.http.middleware import CONTENT_SECURITY_POLICY
from flagadmin.core.http.request_bodies import OrjsonRenderer
from groups.authentication import ConsoleSessionAuthentication

# Swagger UI needs inline styles, which no other page may use.
SWAGGER_POLICY = CONTENT_SECURITY_POLICY + "; style-src 'self' 'unsafe-inline'"


class OpenApiView(APIView):
    """The OpenAPI document, compressed. Needs no token."""

    authentication_classes = ()
    permission_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        document = openapi_document()
        response = get_conditional_response(request, etag=document.etag) or json_response(request, document)
        response.headers["ETag"], response.headers["Cache-Control"] = document.etag, "no-cache"
        return response


class OpenApiDocument(NamedTuple):
    body: bytes
    gzipped: bytes
    etag: str


PREPARE_AFTER = 10.0  # seconds after a worker's start

_building = Lock()


async def prepare_openapi_document() -> None:
    """A task of each worker's loop: generates the document before somebody waits for it."""
    await asyncio.sleep(PREPARE_AFTER)
    await asyncio.to_thread(openapi_document)


def openapi_document() -> OpenApiDocument:
    """Generating the document takes a second, so each process does it once."""
    with _building:
        return _openapi_document()


@cache
def _openapi_document() -> OpenApiDocument:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    body = OpenApiJsonRenderer().render(schema, None, {})
    return OpenApiDocument(body, gzip.compress(body, mtime=0), f'"{hashlib.sha256(body).hexdigest()[:32]}"')


@extend_schema(exclude=True)
class SwaggerView(SpectacularSwaggerSplitView):
    """Swagger UI from local files. Operations can be tried with a console session."""

    authentication_classes = (ConsoleSessionAuthentication,)
    permission_classes = ()
    template_name = "console/api_docs.html"
    url_name = "openapi"

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response: Response = super().get(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = SWAGGER_POLICY
        return response

    def handle_exception(self, exc: Exception) -> Response:
        # The view's renderer would render error records as HTML.
        self.request.accepted_renderer, self.request.accepted_media_type = (
            OrjsonRenderer(),
            "application/json",
        )
        return super().handle_exception(exc)


@extend_schema(exclude=True)
class UnknownRoute(APIView):
    """Answers unknown paths below /api/: 401 without a token, 404 with one."""

    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.user is None:
            raise AuthenticationRequired
        raise NotFound(f"{without_secrets(request.path)} not found.")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise NotFound

    post = put = patch = delete = head = options = get
