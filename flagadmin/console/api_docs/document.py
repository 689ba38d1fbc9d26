"""The OpenAPI document, who may call its operations, and the response for unknown API paths."""

import asyncio
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.plumbing import camelize_operation
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.errors import AuthenticationRequired, NotFound
from flagadmin.core.http.logs import drop_secrets
from flagadmin.core.http.responses import make_json_response
from groups.authentication import ConsoleSessionAuthentication
from groups.roles.subjects import name_permission
from groups.viewsets import Permission, ViewSet
from projects.viewsets import InProjectViewSet, ScopedViewSet


@dataclass(frozen=True, slots=True)
class Callers:
    """``permissions``: any one of them is enough. If there are none, ``rule`` states the requirement."""

    tokens: Sequence[str]
    has_session: bool
    permissions: Sequence[Permission]
    rule: str

    @property
    def named_permissions(self) -> list[tuple[Permission, str]]:
        """The permissions, each with its name from the pages of roles."""
        return [(permission, name_permission(permission)) for permission in self.permissions]


def read_callers(generator: SchemaGenerator, document: dict[str, Any]) -> dict[str, Callers]:
    """Reads the callers of each operation that the generator has put into the document, by the operation's id."""
    callers = {}
    for path, _, method, view in generator._get_paths_and_endpoints():
        path, _ = camelize_operation(path, {"operationId": "unused"})
        if operation := document["paths"].get(path, {}).get(method.lower()):
            callers[operation["operationId"]] = find_callers(view, method)
    return callers


def find_callers(view: Any, method: str) -> Callers:
    return Callers(
        tokens=_find_tokens(view),
        has_session=ConsoleSessionAuthentication in view.authentication_classes,
        permissions=_find_permissions(view),
        rule=_find_rule(view, is_read=method in SAFE_METHODS),
    )


def _find_tokens(view: Any) -> Sequence[str]:
    return sorted(kind for permission_class in view.permission_classes for kind in permission_class.kinds)


def _find_permissions(view: Any) -> Sequence[Permission]:
    if not isinstance(view, ViewSet):
        return ()
    needed = view.needed_permissions
    if needed and isinstance(view, ScopedViewSet):
        needed = (*needed, view.permission_in_project)
    return tuple(dict.fromkeys(needed))


def _find_rule(view: Any, *, is_read: bool) -> str:
    if not view.permission_classes:
        return "No token is needed."
    if not isinstance(view, ViewSet):
        return "The token decides which projects and which environment."
    if not is_read:
        return "No permission of its own. What the request changes may need some: a 403 names them."
    named = "the project" if isinstance(view, InProjectViewSet) else "what it names"
    return f"Everyone who can read {named}."


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
    """``callers``: who may call an operation, by its id, which the document itself does not state."""

    body: bytes
    gzipped: bytes
    etag: str
    callers: dict[str, Callers]


PREPARE_AFTER = 10.0  # seconds after a worker's start

_building = Lock()


async def prepare_openapi_document() -> None:
    """A task of each worker's loop that generates the document before a user needs it."""
    await asyncio.sleep(PREPARE_AFTER)
    await asyncio.to_thread(get_openapi_document)


def get_openapi_document() -> OpenApiDocument:
    """The document. Generating it takes a second, so each process does it once."""
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
