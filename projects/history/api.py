"""/api/admin/events: what happened, newest first."""

from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import Problem, ValidationError
from flagadmin.http.openapi import refusals
from groups.access import Caller
from groups.authentication import ApiRequest
from projects.access import unknown_project
from projects.history.queries import EventFilter, narrowed, readable_events
from projects.history.serializers import (
    EventList,
    EventQuery,
    EventSearchBody,
    FeatureEventList,
    event_record,
)

TAGS = ["Events"]
OPERATORS = "`IS:one`, `IS_ANY_OF:one,two`, or just the value."
PARAMETERS = [
    OpenApiParameter(
        "type",
        str,
        description=f"{OPERATORS} A type that does not exist matches nothing: clients ask for many.",
    ),
    OpenApiParameter("project", str, description=OPERATORS),
    OpenApiParameter("environment", str, description=OPERATORS),
    OpenApiParameter("feature", str, description=OPERATORS),
    OpenApiParameter("createdBy", str, description=f"Id of the account. {OPERATORS}"),
    OpenApiParameter("query", str, description="Part of a name, in any case."),
    OpenApiParameter("from", OpenApiTypes.STR, description="`IS:2026-11-21`, included."),
    OpenApiParameter("to", OpenApiTypes.STR, description="`IS:2026-11-21`, included."),
    OpenApiParameter("limit", int, description="1 to 1000.", default=50),
    OpenApiParameter("offset", int, default=0),
]
ANSWERS = {200: EventList} | refusals(400, 403)


def answer(caller: Caller, given: Any, *, feature: str | None = None) -> dict[str, Any]:
    """One page of the events that match. Raises ValidationError."""
    asked = EventQuery(data=given)
    asked.is_valid(raise_exception=True)
    by = asked.filter()
    check_projects(caller, by)
    events = narrowed(readable_events(caller), by)
    if feature is not None:
        events = events.filter(feature=feature)
    total, offset = events.count(), asked.validated_data["offset"]
    page = events.order_by("-id")[offset : offset + asked.validated_data["limit"]]
    return {
        "version": 1,
        "events": [event_record(event) for event in page],
        "totalEvents": total,
        "total": total,
    }


def check_projects(caller: Caller, by: EventFilter) -> None:
    """Whoever reads every project may ask for one that was deleted, too. Raises ValidationError."""
    unreadable = [project for project in by.projects if not caller.can_read(project)]
    if unreadable:
        raise ValidationError.of(
            Problem("project", unknown_project(caller, project)) for project in unreadable
        )


class EventsView(APIView):
    @extend_schema(operation_id="getEvents", tags=TAGS, parameters=PARAMETERS, responses=ANSWERS)
    def get(self, request: ApiRequest) -> Response:
        """Events of the projects that the caller may read; events about accounts for admins alone."""
        return Response(answer(request.user, request.query_params))


class SearchEventsView(APIView):
    @extend_schema(operation_id="searchEvents", tags=TAGS, parameters=PARAMETERS, responses=ANSWERS)
    def get(self, request: ApiRequest) -> Response:
        """The same, at the address of newer clients."""
        return Response(answer(request.user, request.query_params))


class OldSearchEventsView(APIView):
    @extend_schema(
        operation_id="deprecatedSearchEvents",
        tags=TAGS,
        request=EventSearchBody,
        responses={200: EventList} | refusals(400, 403, 415),
        deprecated=True,
    )
    def post(self, request: ApiRequest) -> Response:
        """The same with a body, for older clients. It changes nothing."""
        if not isinstance(request.data, dict):
            raise ValidationError("The body is not an object.")
        return Response(answer(request.user, request.data))


class FeatureEventsView(APIView):
    @extend_schema(
        operation_id="getEventsForToggle",
        tags=TAGS,
        parameters=PARAMETERS,
        responses={200: FeatureEventList} | refusals(400, 403),
    )
    def get(self, request: ApiRequest, feature_name: str) -> Response:
        """Events of one flag, deleted ones too."""
        found = answer(request.user, request.query_params, feature=feature_name)
        return Response(found | {"toggleName": feature_name})


urlpatterns = [
    path("events", EventsView.as_view()),
    path("events/search", OldSearchEventsView.as_view()),
    path("events/<str:feature_name>", FeatureEventsView.as_view()),
    path("search/events", SearchEventsView.as_view()),
]
