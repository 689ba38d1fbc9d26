"""POST /mcp: the Model Context Protocol, for agents of people and service accounts.

``/.well-known/oauth-protected-resource/mcp`` tells clients that the endpoint takes bearer tokens (RFC 9728).
"""

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.core.change_checks import Refusal
from flagadmin.core.errors import AppError, AuthenticationRequired, NoAccess
from flagadmin.core.http.error_responses import as_app_error, log_and_record
from flagadmin.core.http.request_bodies import FreedBodies
from groups.authentication import ApiKeyAuthentication, ApiRequest, IsCallerOfKind
from groups.models import ApiToken
from integrations.mcp import (
    analysis_tool,
    change_tools,
    comparison_tools,
    connect_tool,
    flag_tools,
    plan_tool,
    request_tool,
    stale_tool,
)
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
from integrations.mcp.tool import MAX_BYTES, MAX_BYTES_ASKED, Call, Tool, render_answer, shorten_answer
from sdk.schemas import read


class IsPersonalCaller(IsCallerOfKind):
    """Accepts the token of a person or service account: an agent always acts for one."""

    kinds: ClassVar[frozenset[str]] = frozenset({ApiToken.Kind.PERSONAL})


@extend_schema(exclude=True)
class McpView(FreedBodies, APIView):
    """The operations of the protocol, which describes its tools itself (``tools/list``)."""

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

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if response.status_code == AuthenticationRequired.status:
            metadata = find_server(self.request._request) + reverse("mcp-metadata")
            response["WWW-Authenticate"] = f'Bearer resource_metadata="{metadata}"'
        return response

    def _make_result(self, message: Message) -> dict[str, object]:
        first = "server/discover" if message.is_modern else "initialize"
        if message.method == first:
            return greet(message)
        if message.method == "tools/list":
            return {"tools": list_tools()} | (CACHED if message.is_modern else {})
        if message.method == "tools/call":
            call = Call(self.request.user, find_server(self.request._request))
            return call_tool(call, message.params.get("name"), message.params.get("arguments"))
        if message.method == "ping" and not message.is_modern:
            return {}
        raise MethodNotFound(f"There is no method {message.method[:100]}.")

    def _refuse(self, message: Message, error: AppError) -> Response:
        """Refuses like the exception handler, with the request's id. Earlier revisions put all errors into a 200."""
        body = make_error_document("", error, "", request_id=message.id)
        known = isinstance(error, InvalidParams | MethodNotFound)
        return Response(body, status=error.status if message.is_modern or not known else 200)


@require_safe
def describe_resource(request: HttpRequest) -> JsonResponse:
    """The protected resource metadata. It names no authorization server: people create their tokens in the console."""
    server = find_server(request)
    return JsonResponse(
        {
            "resource": server + reverse("mcp"),
            "resource_name": "flagadmin",
            "bearer_methods_supported": ["header"],
            "resource_documentation": server + reverse("agents"),
        }
    )


def find_server(request: HttpRequest) -> str:
    return settings.PUBLIC_URL or request.build_absolute_uri("/").rstrip("/")


def check_origin(request: HttpRequest) -> None:
    """Raises NoAccess for pages of other sites (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin and urlsplit(origin).netloc != request.get_host():
        raise NoAccess("Pages of other sites cannot call this server.")


MAX_DETAILS = 10
_REFUSALS = (AppError, APIException, Refusal)
TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in [
        *flag_tools.TOOLS,
        *comparison_tools.TOOLS,
        *analysis_tool.TOOLS,
        *change_tools.TOOLS,
        *request_tool.TOOLS,
        *plan_tool.TOOLS,
        *stale_tool.TOOLS,
        *connect_tool.TOOLS,
    ]
}


def list_tools() -> list[dict[str, Any]]:
    return [tool.document() for tool in TOOLS.values()]


def call_tool(call: Call, name: Any, arguments: Any) -> dict[str, Any]:
    """Calls a tool and returns the result. Invalid arguments and refusals are results too, so that models read them.

    Raises InvalidParams for a tool that does not exist.
    """
    tool = TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise InvalidParams(f"There is no such tool. There are: {', '.join(TOOLS)}.")
    arguments = {} if arguments is None else arguments
    wants_more = False
    try:
        asked = read(tool.arguments, arguments)
        wants_more = asked.wants_more
        answer, is_error = tool.run(call, asked), False
    except _REFUSALS as error:
        answer, is_error = _describe(as_app_error(error), error), True
    document = shorten_answer(answer, max_bytes=MAX_BYTES_ASKED if wants_more else MAX_BYTES)
    text = {"type": "text", "text": render_answer(document)}
    return {"content": [text], "structuredContent": document, "isError": is_error}


def _describe(error: AppError, cause: Exception) -> dict[str, Any]:
    record = log_and_record(error, cause)
    details = record.get("details", [])[:MAX_DETAILS]
    return {"error": record["name"], "message": record["message"]} | ({"details": details} if details else {})
