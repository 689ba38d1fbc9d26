"""/ofrep/v1: flags for OpenFeature's providers (OpenFeature Remote Evaluation Protocol, open-feature/protocol)."""

from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.authentication import BaseAuthentication

from flagadmin.core.errors import AuthenticationRequired
from flagadmin.core.http.client_address import client_address
from flagadmin.core.http.not_modified import is_known, not_modified
from flagadmin.core.server.event_streams import CONTENT_TYPE, streams
from groups.authentication import ApiKeyHeaderAuthentication, ApiRequest, IsCallerOfKind
from groups.models import ApiToken
from playground.engine.context import Context
from playground.response.snapshot import ResponseSnapshot
from playground.snapshot_cache import snapshot_at
from sdk.base import environment_of, token_of
from sdk.cors import CorsView
from sdk.delta.api import is_id
from sdk.delta.scope import read_scope
from sdk.ofrep import openapi
from sdk.ofrep.documents import render_flag, render_flags
from sdk.ofrep.etag import make_etag
from sdk.ofrep.request import LenientJSONParser, read_body
from sdk.ofrep.tickets import TicketAuthentication, event_streams, ticket_of
from sdk.watcher.scopes import token_scope
from sdk.watcher.token_streams import subscription

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


class OfrepView(CorsView):
    """Answers other origins for frontend tokens only: a backend token belongs on no page."""

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
    """A request that was read: the flags, the context, and the moment."""

    def __init__(self, request: ApiRequest) -> None:
        environment = environment_of(request)
        self.context: Context = read_body(
            request.data, environment=environment, address=client_address(request._request)
        )
        self.token = token_of(request)
        self.revisions = token_scope(self.token, using=DEFAULT_DB_ALIAS).revisions
        self.compiled: ResponseSnapshot = snapshot_at(self.revisions, environment)
        self.browser = is_browser(request)
        self.now: datetime = timezone.now()


def is_browser(request: ApiRequest) -> bool:
    """Whether anybody may read the token, which is part of a page or an app."""
    return token_of(request).kind == Kind.FRONTEND


class FlagView(OfrepView):
    @extend_schema(
        operation_id="evaluateOfrepFlag",
        summary="Evaluate one flag for an OpenFeature provider",
        description=openapi.SINGLE,
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
        asked = Question(request)
        body = render_flag(asked.compiled, key, asked.context, asked.now, browser=asked.browser)
        return HttpResponse(body, content_type="application/json")


class FlagsView(OfrepView):
    @extend_schema(
        operation_id="evaluateOfrepFlags",
        summary="Evaluate all flags for an OpenFeature provider",
        description=openapi.BULK,
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
        asked = Question(request)
        ticket = ticket_of(asked.token)
        etag = make_etag(asked.compiled.snapshot, asked.revisions, asked.context, asked.now, ticket=ticket)
        if is_known(request, etag):
            return not_modified(etag)
        body = render_flags(
            asked.compiled,
            asked.context,
            asked.now,
            browser=asked.browser,
            eventStreams=event_streams(ticket),
        )
        return HttpResponse(body, content_type="application/json", headers={"ETag": etag})


class EventsView(OfrepView):
    """The beginning of a stream, which the event loop keeps open (``sdk.ofrep.change_events``)."""

    authentication_classes = (TicketAuthentication, ApiKeyHeaderAuthentication)
    cors_methods = "GET, OPTIONS"

    @extend_schema(
        operation_id="getOfrepEvents",
        summary="Be told when to evaluate all flags again, as server-sent events",
        description=openapi.EVENTS,
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
        token = token_of(request)
        scope, _ = read_scope(token, using=DEFAULT_DB_ALIAS)
        known = request.headers.get("Last-Event-ID", "").strip()
        response = HttpResponse(content_type=CONTENT_TYPE)
        response["Cache-Control"] = "no-store"
        response["X-Accel-Buffering"] = "no"  # nginx passes events on at once
        version = int(known) if is_id(known) else None
        response.stream = subscription(token, scope, version)  # type: ignore[attr-defined]
        return response
