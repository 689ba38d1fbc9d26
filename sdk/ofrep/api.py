"""/ofrep/v1: flags for OpenFeature's providers (OpenFeature Remote Evaluation Protocol, open-feature/protocol).

Serializers and examples that only describe OFREP in the OpenAPI document.
"""

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers as s
from rest_framework.authentication import BaseAuthentication

from flagadmin.core.errors import AuthenticationRequired, ValidationError
from flagadmin.core.http.fields import MapOf
from flagadmin.core.http.middleware import get_client_address
from flagadmin.core.http.openapi import read_sections
from flagadmin.core.http.request_bodies import StrictJSONParser
from flagadmin.core.server.event_streams import CONTENT_TYPE, HEADERS
from groups.authentication import ApiKeyHeaderAuthentication, ApiRequest, IsCallerOfKind
from groups.models import ApiToken
from playground.context_body import MAX_FIELDS, MAX_TEXT_LENGTH
from playground.snapshot_cache import load_snapshot_at
from sdk.base import CorsView, get_token, respond
from sdk.delta.history import read_version
from sdk.delta.states import read_scope
from sdk.evaluation.prepared import Answer, make_context, prepare
from sdk.ofrep.answers import answer_flag, answer_flags, event_streams, read_body
from sdk.ofrep.change_events import TicketAuthentication, ticket_of
from sdk.ofrep.reasons import Reason
from sdk.poll_shortcuts import Origin, mark_origin
from sdk.watcher.token_streams import streams, subscription
from sdk.watcher.watcher import token_scope

SECTIONS = read_sections(__file__)


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": True,
        "maxProperties": MAX_FIELDS,
        "properties": {"targetingKey": {"type": "string", "maxLength": MAX_TEXT_LENGTH}},
        "example": {"targetingKey": "42", "country": "NO"},
    }
)
class ContextField(s.JSONField):
    """Any members; ``targetingKey`` identifies the user."""


@extend_schema_field(
    {"oneOf": [{"type": kind} for kind in ("boolean", "string", "number", "object", "array")]}
)
class ValueField(s.JSONField):
    """A value of any type."""


@extend_schema_field({"oneOf": [{"type": kind} for kind in ("boolean", "string", "number")]})
class MetadataField(s.JSONField):
    """A scalar."""


class OfrepRequest(s.Serializer[Any]):
    context = ContextField(required=False, allow_null=True)  # type: ignore[assignment]


class OfrepEvaluation(s.Serializer[Any]):
    key = s.CharField(help_text="Name of the flag.")
    reason = s.ChoiceField(choices=[reason.value for reason in Reason])
    variant = s.CharField(help_text='Name of the variant; "enabled" or "disabled" without one.')
    value = ValueField(help_text="The payload of the variant, or without one whether the flag is on.")
    metadata = MapOf(
        child=MetadataField(), help_text="`why`, `project`, `stale`; `bucket` and `random` if any."
    )


class OfrepFailure(s.Serializer[Any]):
    key = s.CharField(required=False, help_text="Name of the flag.")
    errorCode = s.ChoiceField(
        choices=["PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT", "FLAG_NOT_FOUND", "GENERAL"]
    )
    errorDetails = s.CharField(help_text="What is wrong.")


@extend_schema_field(
    {
        "oneOf": [
            {"$ref": "#/components/schemas/OfrepEvaluation"},
            {"$ref": "#/components/schemas/OfrepFailure"},
        ]
    }
)
class ResultField(s.JSONField):
    """An evaluation, or an error."""


class OfrepEndpoint(s.Serializer[Any]):
    requestUri = s.CharField(help_text="Path and query, at the origin of this server.")


class OfrepEventStream(s.Serializer[Any]):
    type = s.ChoiceField(choices=["sse"])
    endpoint = OfrepEndpoint()


class OfrepEvaluations(s.Serializer[Any]):
    flags = s.ListField(child=ResultField())
    eventStreams = OfrepEventStream(many=True)


def describe_response(
    description: str, *examples: tuple[str, Any], serializer: Any = OfrepFailure
) -> OpenApiResponse:
    return OpenApiResponse(
        serializer,
        description=description,
        examples=[OpenApiExample(name, value=value, response_only=True) for name, value in examples],
    )


def describe_refusal(code: str, details: str, key: str | None = None) -> tuple[str, Any]:
    named = {} if key is None else {"key": key}
    return code, {**named, "errorCode": code, "errorDetails": details}


METADATA = {
    "why": "userId 42 is in bucket 8, 60 % rollout",
    "project": "default",
    "stale": False,
    "bucket": 8,
}
ON = {
    "key": "new-checkout",
    "reason": "SPLIT",
    "variant": "enabled",
    "value": True,
    "metadata": METADATA,
}
BLUE = {
    "key": "button",
    "reason": "SPLIT",
    "variant": "blue",
    "value": "#00f",
    "metadata": {"why": "On for everyone", "project": "default", "stale": False},
}
REQUEST = OpenApiExample(
    "A user", value={"context": {"targetingKey": "42", "country": "NO"}}, request_only=True
)
REFUSALS = {
    401: describe_response(
        "No token, or an unknown one.", describe_refusal("GENERAL", "API token not found.")
    ),
    403: describe_response(
        "A token of another kind.",
        describe_refusal(
            "GENERAL", "This is an admin token; this endpoint accepts backend or frontend tokens only."
        ),
    ),
    413: describe_response(
        "The body is too large.",
        describe_refusal("GENERAL", "The body is larger than the 1 MB accepted here."),
    ),
    429: describe_response("Too many requests; `Retry-After` says how long to wait."),
}
KEY = OpenApiParameter("key", str, OpenApiParameter.PATH, description="Name of the flag.")
TICKET = OpenApiParameter(
    "ticket", str, description="As in `eventStreams`; a token in a header will do, too."
)
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID", str, OpenApiParameter.HEADER, description="The `id` of the last event received."
)
STREAMS = [{"type": "sse", "endpoint": {"requestUri": "/ofrep/v1/events?ticket=12.5f0c…"}}]
EVENT = OpenApiExample(
    "A change",
    value='event: message\nid: 42135\ndata: {"type":"refetchEvaluation"}\n\n',
    response_only=True,
    status_codes=["200"],
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="The ETag of the previous answer."
)
REFETCH = [
    OpenApiParameter(name, str, description="Sent by providers after a change event; not needed here.")
    for name in ("flagConfigEtag", "flagConfigLastModified")
]


class ApiKeyHeaderScheme(OpenApiAuthenticationExtension):
    """``Authorization: Bearer TOKEN`` or ``X-API-Key: TOKEN``."""

    target_class = "groups.authentication.ApiKeyHeaderAuthentication"
    name = ["ofrepBearer", "ofrepApiKey"]

    def get_security_definition(self, auto_schema: Any) -> Any:
        return [
            {"type": "http", "scheme": "bearer", "description": "A backend or frontend token."},
            {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same token."},
        ]


Kind = ApiToken.Kind


class IsSdkCaller(IsCallerOfKind):
    """Backend and frontend tokens."""

    kinds = frozenset({Kind.BACKEND, Kind.FRONTEND})

    def has_permission(self, request: Any, view: Any) -> bool:
        if request.user is None:
            raise AuthenticationRequired(
                "Send a backend or frontend token: Authorization: Bearer TOKEN, or X-API-Key: TOKEN."
            )
        return super().has_permission(request, view)


class LenientJSONParser(StrictJSONParser):
    """Parses JSON regardless of the Content-Type, also without one."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return super().parse(stream, media_type, parser_context)
        except ValidationError as error:
            return error  # raised by the view, after authentication


class OfrepView(CorsView):
    """Answers other origins only for frontend tokens: a backend token does not belong in a page."""

    tags = ("OpenFeature (OFREP)",)
    authentication_classes: tuple[type[BaseAuthentication], ...] = (ApiKeyHeaderAuthentication,)
    permission_classes = (IsSdkCaller,)
    parser_classes = (LenientJSONParser,)
    cors_methods = "POST, OPTIONS"
    pages_may_read = True

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method != "OPTIONS":
            self.pages_may_read = is_browser(request)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers.setdefault("Cache-Control", "no-cache")
        if not self.pages_may_read:
            del answer["Access-Control-Allow-Origin"]
        return answer


class Question:
    """A parsed request: the flags, the context, and the caller."""

    def __init__(self, request: ApiRequest) -> None:
        if isinstance(request.data, ValidationError):
            raise request.data
        fields = read_body(request.data)
        self._token = get_token(request)
        self.scope = token_scope(self._token, using=DEFAULT_DB_ALIAS)
        self.context = make_context(
            fields,
            environment=self.scope.environment,
            address=get_client_address(request._request),
            now=timezone.now(),
        )
        self.prepared = prepare(
            load_snapshot_at(self.scope.revisions, self.scope.environment), self.scope.revisions
        )

    def respond(self, answer: Answer | None) -> HttpResponse:
        response = respond(answer)
        mark_origin(response, Origin(self._token.pk, self.scope))
        return response


def is_browser(request: ApiRequest) -> bool:
    """Whether the token is public, as part of a page or an app."""
    return get_token(request).kind == Kind.FRONTEND


class FlagView(OfrepView):
    @extend_schema(
        operation_id="evaluateOfrepFlag",
        summary="Evaluate one flag for an OpenFeature provider",
        description=SECTIONS["Evaluate one flag"],
        parameters=[KEY],
        request={"application/json": OfrepRequest},
        examples=[REQUEST],
        responses=REFUSALS
        | {
            200: describe_response(
                "The flag's value.",
                ("A rollout", ON),
                ("A variant with a payload", BLUE),
                serializer=OfrepEvaluation,
            ),
            400: describe_response(
                "The body or the context cannot be read, or a needed targeting key is missing.",
                describe_refusal(
                    "TARGETING_KEY_MISSING",
                    "The rollout of flag new-checkout is by userId: the context needs a targetingKey.",
                    "new-checkout",
                ),
            ),
            404: describe_response(
                "No active flag of this name is in the token's projects.",
                describe_refusal(
                    "FLAG_NOT_FOUND",
                    "Active flag checkout not found in production with this token's projects.",
                    "checkout",
                ),
            ),
        },
    )
    def post(self, request: ApiRequest, key: str) -> HttpResponse:
        question = Question(request)
        browser = is_browser(request)
        return question.respond(answer_flag(question.prepared, key, question.context, browser=browser))


class FlagsView(OfrepView):
    @extend_schema(
        operation_id="evaluateOfrepFlags",
        summary="Evaluate all flags for an OpenFeature provider",
        description=SECTIONS["Evaluate all flags"],
        parameters=[IF_NONE_MATCH, *REFETCH],
        request={"application/json": OfrepRequest},
        examples=[REQUEST],
        responses=REFUSALS
        | {
            200: describe_response(
                "Every flag's value.",
                ("Two flags", {"flags": [BLUE, ON], "eventStreams": STREAMS}),
                serializer=OfrepEvaluations,
            ),
            304: OpenApiResponse(description="Nothing has changed; no body."),
            400: describe_response(
                "The body or the context cannot be read.",
                describe_refusal("INVALID_CONTEXT", 'The context must be an object, not "42".'),
            ),
        },
    )
    def post(self, request: ApiRequest) -> HttpResponse:
        question = Question(request)
        answer = answer_flags(
            question.prepared,
            question.context,
            request.headers.get("If-None-Match", ""),
            browser=is_browser(request),
            streams=event_streams(ticket_of(get_token(request))),
        )
        return question.respond(answer)


class EventsView(OfrepView):
    """The beginning of a stream, which the event loop keeps open (``sdk.ofrep.change_events``)."""

    authentication_classes = (TicketAuthentication, ApiKeyHeaderAuthentication)
    cors_methods = "GET, OPTIONS"

    @extend_schema(
        operation_id="getOfrepEvents",
        summary="Be told when to evaluate all flags again, as server-sent events",
        description=SECTIONS["Listen for changes"],
        parameters=[TICKET, LAST_EVENT_ID],
        responses={status: REFUSALS[status] for status in (401, 403, 429)}
        | {
            (200, CONTENT_TYPE): OpenApiResponse(
                OpenApiTypes.STR, description="Events, for as long as both stay."
            )
        },
        examples=[EVENT],
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        streams.check_room()
        token = get_token(request)
        scope, _ = read_scope(token, using=DEFAULT_DB_ALIAS)
        response = HttpResponse(content_type=CONTENT_TYPE, headers=HEADERS)
        version = read_version(request.headers.get("Last-Event-ID", ""))
        response.stream = subscription(token, scope, version)  # type: ignore[attr-defined]
        return response
