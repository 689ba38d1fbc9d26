"""/ofrep/v1: flags for OpenFeature's providers (OpenFeature Remote Evaluation Protocol, open-feature/protocol)."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.authentication import BaseAuthentication

from flagadmin.core.errors import AuthenticationRequired, ValidationError
from flagadmin.core.http.request_bodies import StrictJSONParser
from flagadmin.core.http.request_metrics import get_client_address
from flagadmin.core.server.event_streams import CONTENT_TYPE, HEADERS
from groups.authentication import ApiKeyHeaderAuthentication, ApiRequest, IsCallerOfKind
from groups.models import ApiToken
from playground.snapshot_cache import load_snapshot_at
from sdk.base import CorsView, get_token, respond
from sdk.delta.history import read_version
from sdk.delta.scope import read_scope
from sdk.evaluation.prepared import Answer, make_context, prepare
from sdk.ofrep import openapi
from sdk.ofrep.answers import answer_flag, answer_flags, event_streams
from sdk.ofrep.change_events import TicketAuthentication, ticket_of
from sdk.ofrep.request import read_body
from sdk.poll_shortcuts import Origin, mark_origin
from sdk.watcher.token_streams import streams, subscription
from sdk.watcher.watcher import token_scope

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
        description=openapi.SECTIONS["Evaluate one flag"],
        parameters=[openapi.KEY],
        request={"application/json": openapi.OfrepRequest},
        examples=[openapi.REQUEST],
        responses=openapi.REFUSALS
        | {
            200: openapi.describe_response(
                "The flag's value.",
                ("A rollout", openapi.ON),
                ("A variant with a payload", openapi.BLUE),
                serializer=openapi.OfrepEvaluation,
            ),
            400: openapi.describe_response(
                "The body or the context cannot be read, or a needed targeting key is missing.",
                openapi.describe_refusal(
                    "TARGETING_KEY_MISSING",
                    "The rollout of flag new-checkout is by userId: the context needs a targetingKey.",
                    "new-checkout",
                ),
            ),
            404: openapi.describe_response(
                "No active flag of this name is in the token's projects.",
                openapi.describe_refusal(
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
        description=openapi.SECTIONS["Evaluate all flags"],
        parameters=[openapi.IF_NONE_MATCH, *openapi.REFETCH],
        request={"application/json": openapi.OfrepRequest},
        examples=[openapi.REQUEST],
        responses=openapi.REFUSALS
        | {
            200: openapi.describe_response(
                "Every flag's value.",
                ("Two flags", {"flags": [openapi.BLUE, openapi.ON], "eventStreams": openapi.STREAMS}),
                serializer=openapi.OfrepEvaluations,
            ),
            304: OpenApiResponse(description="Nothing has changed; no body."),
            400: openapi.describe_response(
                "The body or the context cannot be read.",
                openapi.describe_refusal("INVALID_CONTEXT", 'The context must be an object, not "42".'),
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
        description=openapi.SECTIONS["Listen for changes"],
        parameters=[openapi.TICKET, openapi.LAST_EVENT_ID],
        responses={status: openapi.REFUSALS[status] for status in (401, 403, 429)}
        | {
            (200, CONTENT_TYPE): OpenApiResponse(
                OpenApiTypes.STR, description="Events, for as long as both stay."
            )
        },
        examples=[openapi.EVENT],
    )
    def get(self, request: ApiRequest) -> HttpResponse:
        streams.check_room()
        token = get_token(request)
        scope, _ = read_scope(token, using=DEFAULT_DB_ALIAS)
        response = HttpResponse(content_type=CONTENT_TYPE, headers=HEADERS)
        version = read_version(request.headers.get("Last-Event-ID", ""))
        response.stream = subscription(token, scope, version)  # type: ignore[attr-defined]
        return response
