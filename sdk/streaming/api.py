"""GET /api/client/streaming: sends SDKs changes at once, over a response that stays open.

This module makes its beginning. The event loop keeps the response open (``flagadmin/core/server/event_streams.py``);
without one, as under another server, it ends, and the client connects again.
"""

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from flagadmin.core.db.outages import read_for_sdks
from flagadmin.core.http.openapi import refusal
from flagadmin.core.server.event_streams import CONTENT_TYPE, HEADERS, make_event_parts
from groups.authentication import ApiRequest
from sdk.base import ClientView, get_token
from sdk.delta.history import read_version
from sdk.delta.states import read_scope, states
from sdk.streaming.scope_streams import CONNECTED, NOTHING
from sdk.watcher.token_streams import streams, subscription

HEADER = "Last-Event-ID"
EXAMPLE = (
    'event: unleash-connected\nid: 1795358405\ndata: {"events":[{"type":"hydration",…}]}\n\n'
    'event: unleash-updated\nid: 1795358423\ndata: {"events":[{"type":"feature-updated",…}]}\n\n'
)


class StreamingView(ClientView):
    @extend_schema(
        operation_id="getStreaming",
        parameters=[
            OpenApiParameter(
                HEADER,
                str,
                OpenApiParameter.HEADER,
                description="The `id` of the last event that was received.",
            )
        ],
        responses={
            (200, CONTENT_TYPE): OpenApiResponse(
                OpenApiTypes.STR, description="Events, for as long as both stay."
            ),
            429: refusal(
                429, "Too many streams are open. `Retry-After` says how long to wait; SDKs poll meanwhile."
            ),
        },
        examples=[OpenApiExample("Events", value=EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: ApiRequest) -> StreamingHttpResponse:
        """Send what changes in the flags that the token can read, as server-sent events.

        `unleash-connected` comes first, with everything (a `hydration`) or with what was missed since
        `Last-Event-ID`, then `unleash-updated` after each change. The data of both are those of `/api/client/delta`.
        The stream ends when the token is revoked, expires or can read other projects.
        """
        streams.check_room()
        return read_for_sdks(lambda using: self._answer(request, using=using))

    def _answer(self, request: ApiRequest, *, using: str) -> StreamingHttpResponse:
        token = get_token(request)
        scope, revisions = read_scope(token, using=using)
        state = states.get(scope)
        state.bring_up_to_date(revisions, using=using)
        version, events = state.events(read_version(request.headers.get(HEADER, "")))
        response = StreamingHttpResponse(
            make_event_parts(CONNECTED, events.parts() if events else [NOTHING], identifier=version),
            content_type=CONTENT_TYPE,
            headers=HEADERS,
        )
        response.stream = subscription(token, scope, version, holds=state)  # type: ignore[attr-defined]
        return response
