"""POST /mcp: the Model Context Protocol, for agents of people and service accounts."""

from typing import ClassVar
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.errors import AppError, NoAccess
from flagadmin.core.http.request_bodies import FreedBodies
from groups.authentication import ApiKeyAuthentication, ApiRequest, IsCallerOfKind
from groups.models import ApiToken
from integrations.mcp.protocol import (
    CACHED,
    InvalidParams,
    Message,
    MethodNotFound,
    check_message,
    greet,
    make_error_document,
    read_message,
)
from integrations.mcp.tool import Call
from integrations.mcp.tools import call_tool, list_tools


class IsPersonalCaller(IsCallerOfKind):
    """The token of a person or a service account: an agent always acts for somebody."""

    kinds: ClassVar[frozenset[str]] = frozenset({ApiToken.Kind.PERSONAL})


@extend_schema(exclude=True)
class McpView(FreedBodies, APIView):
    """Its operations are the protocol's, which describes its tools itself (``tools/list``)."""

    request: ApiRequest
    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (IsPersonalCaller,)

    def post(self, request: ApiRequest) -> Response:
        check_origin(request._request)
        message = read_message(request.data, request.headers)
        try:
            check_message(message, request.headers)
            if message.id is None:  # a notification
                return Response(status=202)
            return Response(message.answer(self._make_result(message)))
        except AppError as error:
            return self._refuse(message, error)

    def _make_result(self, message: Message) -> dict[str, object]:
        first = "server/discover" if message.is_modern else "initialize"
        if message.method == first:
            return greet(message)
        if message.method == "tools/list":
            return {"tools": list_tools()} | (CACHED if message.is_modern else {})
        if message.method == "tools/call":
            call = Call(self.request.user, settings.PUBLIC_URL or find_server(self.request._request))
            return call_tool(call, message.params.get("name"), message.params.get("arguments"))
        if message.method == "ping" and not message.is_modern:
            return {}
        raise MethodNotFound(f"There is no method {message.method[:100]}.")

    def _refuse(self, message: Message, error: AppError) -> Response:
        """As the exception handler would, with the request's id. Earlier revisions have all errors in a 200."""
        body = make_error_document("", error, "", request_id=message.id)
        known = isinstance(error, InvalidParams | MethodNotFound)
        return Response(body, status=error.status if message.is_modern or not known else 200)


def find_server(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")


def check_origin(request: HttpRequest) -> None:
    """Raises NoAccess for pages of other sites, which have no business here (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin and urlsplit(origin).netloc != request.get_host():
        raise NoAccess("Pages of other sites cannot call this server.")
