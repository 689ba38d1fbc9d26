"""/api/admin/events: audit events, newest first."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Problem, ValidationError
from groups.people.serializers import AccountName
from groups.viewsets import ApiRequest, Caller, ViewSet
from projects.access import describe_unknown_project
from projects.history.changes import users_changed
from projects.history.queries import (
    EventFilter,
    hide_projects,
    list_event_creators,
    narrow_events,
    read_settled_id,
    readable_events,
)
from projects.history.serializers import (
    EventLinesQuery,
    EventList,
    EventQuery,
    EventSearchBody,
    FeatureEventList,
    make_event_record,
)

MEDIA_TYPE = "application/x-ndjson"
NEXT = "X-Next-Cursor"


def write_lines(events: Iterable[AuditEvent]) -> bytes:
    return b"".join(orjson.dumps(make_event_record(event)) + b"\n" for event in events)


def answer_lines(caller: Caller, data: Mapping[str, Any]) -> HttpResponse:
    """Events after the one in ``cursor``, up to the last before which no other can appear. Raises ValidationError."""
    query = EventLinesQuery(data=data)
    query.is_valid(raise_exception=True)
    if query.validated_data["offset"]:
        raise ValidationError.of([Problem("offset", "cannot be used with a cursor")])
    cursor, limit = query.validated_data.get("cursor"), query.validated_data["limit"]
    if cursor is None:
        raise ValidationError.of([Problem("cursor", "must be a number, 0 for the oldest event")])
    events = narrow_events(readable_events(caller), query.filter())
    page = list(events.filter(pk__gt=cursor, pk__lte=read_settled_id()).order_by("pk")[:limit])
    answer = HttpResponse(write_lines(hide_projects(page, caller)), content_type=MEDIA_TYPE)
    answer[NEXT] = str(page[-1].pk if page else cursor)
    return answer


LISTED = {(200, "application/json"): EventList, (200, MEDIA_TYPE): OpenApiTypes.STR}


def list_events(caller: Caller, data: Any, *, feature: str | None = None) -> dict[str, Any]:
    """One page of matching events, as the response body. Raises ValidationError."""
    query = EventQuery(data=data)
    query.is_valid(raise_exception=True)
    criteria = query.filter()
    check_projects(caller, criteria)
    events = narrow_events(readable_events(caller), criteria)
    if feature is not None:
        events = events.filter(feature=feature)
    total, offset = events.count(), query.validated_data["offset"]
    page = events.newest_first()[offset : offset + query.validated_data["limit"]]
    return {
        "version": 1,
        "events": _make_records(hide_projects(page, caller)),
        "totalEvents": total,
        "total": total,
    }


def _make_records(events: Sequence[AuditEvent]) -> list[dict[str, Any]]:
    counted = users_changed(events)
    return [
        make_event_record(event) | ({"whoChanges": counted[event.pk]} if event.pk in counted else {})
        for event in events
    ]


def check_projects(caller: Caller, criteria: EventFilter) -> None:
    """Raises ValidationError for unreadable projects. Callers who can read every project may name deleted ones."""
    unreadable = [project for project in criteria.projects if not caller.can_read(project)]
    if unreadable:
        raise ValidationError.of(
            Problem("project", describe_unknown_project(caller, project)) for project in unreadable
        )


class EventViewSet(ViewSet):
    tags = ("Events",)
    lookup_url_kwarg = "feature_name"
    permissions = {"search": None}

    @extend_schema(operation_id="getEvents", parameters=[EventLinesQuery], responses=LISTED)
    def list(self, request: ApiRequest) -> Response | HttpResponse:
        """List events of the projects that the caller can read.

        Events about accounts are listed only for administrators and readers of the login history.
        """
        if "cursor" in request.query_params:
            return answer_lines(self.caller, request.query_params)
        return Response(list_events(self.caller, request.query_params))

    @extend_schema(
        operation_id="deprecatedSearchEvents", request=EventSearchBody, responses=EventList, deprecated=True
    )
    @action(detail=False, methods=["post"])
    def search(self, request: ApiRequest) -> Response:
        """Search events with a request body instead of a query string, for older clients. Changes nothing."""
        if not isinstance(request.data, dict):
            raise ValidationError("The body is not an object.")
        return Response(list_events(self.caller, request.data))

    @extend_schema(operation_id="getEventsForToggle", parameters=[EventQuery], responses=FeatureEventList)
    def retrieve(self, request: ApiRequest, feature_name: str) -> Response:
        """List the events of one flag, which may have been deleted."""
        record = list_events(self.caller, request.query_params, feature=feature_name)
        return Response(record | {"toggleName": feature_name})


class EventSearchViewSet(ViewSet):
    tags = ("Events",)

    @extend_schema(operation_id="searchEvents", parameters=[EventQuery], responses=EventList)
    def list(self, request: ApiRequest) -> Response:
        """Search events, like listing them, at the URL that newer clients use."""
        return Response(list_events(self.caller, request.query_params))


class EventCreatorViewSet(ViewSet):
    tags = ("Events",)

    @extend_schema(operation_id="getEventCreators", responses={200: AccountName(many=True)})
    def list(self, request: ApiRequest) -> Response:
        """List the accounts that made a change that the caller can see, for the filter `createdBy`."""
        return Response(AccountName(list_event_creators(self.caller), many=True).data)
