"""/api/admin/segments: named lists of constraints that strategies share."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NameExists, NotFound
from flagadmin.http.fields import Body, ListOf, NameBody, validated
from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project, readable_flags
from projects.context_fields.api import named_project
from projects.models import Segment, Strategy
from projects.project_scope import visible
from projects.segments import actions
from projects.segments.documents import segment_document
from projects.strategies.actions import update_strategy
from projects.strategies.constraint_serializers import ConstraintBody
from projects.used_by import segment_uses
from projects.used_by_counts import UNUSED, segment_usage
from projects.used_by_serializers import SegmentUses

TAGS = ["Segments"]


class SegmentChanges(Body):
    name = serializers.CharField(max_length=255, required=False)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    constraints = ConstraintBody(many=True, required=False, help_text="All must hold.")
    project = serializers.CharField(
        source="project_id",
        required=False,
        allow_null=True,
        help_text="The one project it is for; null for all.",
    )


class SegmentBody(SegmentChanges):
    name = serializers.CharField(max_length=255)
    constraints = ConstraintBody(many=True, help_text="All must hold.")


class SegmentRecord(SegmentBody):
    id = serializers.IntegerField()
    createdBy = serializers.CharField()
    createdAt = serializers.DateTimeField()
    usedInFeatures = serializers.IntegerField(required=False, help_text="Active flags with it on a strategy.")
    usedInProjects = serializers.IntegerField(required=False)


class SegmentList(serializers.Serializer):
    segments = SegmentRecord(many=True)


class UsesOfSegment(SegmentUses):
    changeRequestStrategies = serializers.ListField(
        child=serializers.DictField(), help_text="Always empty: there are no change requests here."
    )


class SegmentsView(APIView):
    @extend_schema(operation_id="getSegments", tags=TAGS, responses={200: SegmentList} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """The segments the caller may read, by name."""
        usage = segment_usage(request.user)
        segments = visible(Segment.objects.all(), request.user)
        return Response({"segments": [segment_document(s) | usage.get(s.pk, UNUSED) for s in segments]})

    @extend_schema(
        operation_id="createSegment",
        tags=TAGS,
        request=SegmentBody,
        responses={201: SegmentRecord} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        actions.check_may_create(request.user, named_project(request))
        values = validated(SegmentBody(data=request.data))
        segment = actions.create_segment(values, caller=request.user)
        headers = {"Location": f"segments/{segment.pk}"}
        return Response(segment_document(segment), status=201, headers=headers)


class StrategySegmentsBody(Body):
    projectId = serializers.CharField()
    environmentId = serializers.CharField()
    strategyId = serializers.CharField()
    segmentIds = ListOf(child=serializers.IntegerField(), help_text="In place of those it has.")


class SetStrategySegmentsView(APIView):
    @extend_schema(
        operation_id="updateFeatureStrategySegments",
        tags=TAGS,
        request=StrategySegmentsBody,
        responses={201: StrategySegmentsBody} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Put these segments on a strategy, in place of those it has."""
        body = validated(StrategySegmentsBody(data=request.data))
        project, environment = body["projectId"], body["environmentId"]
        access_project(request.user, project)
        request.user.check(Permission.UPDATE_FEATURE_STRATEGY, project=project, environment=environment)
        strategy = Strategy.objects.filter(pk=_uuid(body["strategyId"]), flag__project=project)
        flag = strategy.values_list("flag__name", flat=True).first()
        if flag is None:
            raise NotFound(f"There is no strategy with id {body['strategyId']} in project {project}.")
        changes = {"segments": body["segmentIds"]}
        update_strategy(project, flag, environment, body["strategyId"], changes, caller=request.user)
        return Response(body, status=201)


class ValidateSegmentView(APIView):
    @extend_schema(
        operation_id="validateSegment",
        tags=TAGS,
        request=NameBody,
        responses={204: None} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether a segment of this name could be created."""
        actions.check_may_create(request.user, None)
        name = validated(NameBody(data=request.data))["name"]
        if Segment.objects.filter(name=name).exists():
            raise NameExists(f"A segment named {name} already exists.")
        return Response(status=204)


class SegmentView(APIView):
    @extend_schema(
        operation_id="getSegment", tags=TAGS, responses={200: SegmentRecord} | refusals(400, 403, 404)
    )
    def get(self, request: ApiRequest, segment_id: str) -> Response:
        segment = actions.access_segment(request.user, path_id(segment_id))
        return Response(segment_document(segment) | segment_usage(request.user).get(segment.pk, UNUSED))

    @extend_schema(
        operation_id="updateSegment",
        tags=TAGS,
        request=SegmentChanges,
        responses={204: None} | refusals(400, 403, 404, 409, 415),
    )
    def put(self, request: ApiRequest, segment_id: str) -> Response:
        """Change what is given. A project is set only while no strategy of another one has the segment."""
        identifier = path_id(segment_id)
        actions.access_segment_with(request.user, identifier, Permission.UPDATE_SEGMENT)
        changes: dict[str, Any] = validated(SegmentChanges(data=request.data))
        actions.update_segment(identifier, changes, caller=request.user)
        return Response(status=204)

    @extend_schema(
        operation_id="removeSegment",
        tags=TAGS,
        responses={204: None}
        | refusals(
            400,
            403,
            404,
            descriptions={409: "A strategy has the segment; the message names the flags and projects."},
        ),
    )
    def delete(self, request: ApiRequest, segment_id: str) -> Response:
        actions.delete_segment(path_id(segment_id), caller=request.user)
        return Response(status=204)


class SegmentStrategiesView(APIView):
    @extend_schema(
        operation_id="getStrategiesBySegmentId",
        tags=TAGS,
        responses={200: UsesOfSegment} | refusals(400, 403, 404),
    )
    def get(self, request: ApiRequest, segment_id: str) -> Response:
        """The strategies of active flags, and the default strategies, that have this segment."""
        segment = actions.access_segment(request.user, path_id(segment_id))
        return Response(segment_uses(segment.pk, request.user) | {"changeRequestStrategies": []})


class StrategySegmentsView(APIView):
    @extend_schema(
        operation_id="getSegmentsByStrategyId",
        tags=TAGS,
        responses={200: SegmentList} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, strategy_id: str) -> Response:
        """The segments of one strategy."""
        flags = readable_flags(request.user)
        strategy = Strategy.objects.filter(pk=_uuid(strategy_id), flag__in=flags).first()
        if strategy is None:
            raise NotFound(f"There is no strategy with id {strategy_id}.")
        segments = strategy.segments.order_by("strategy_links__id")
        return Response({"segments": [segment_document(segment) for segment in segments]})


def _uuid(text: str) -> Any:
    field = serializers.UUIDField()
    try:
        return field.to_internal_value(text)
    except serializers.ValidationError:
        raise NotFound(f"There is no strategy with id {text}.") from None


urlpatterns = [
    path("segments", SegmentsView.as_view()),
    path("segments/validate", ValidateSegmentView.as_view()),
    path("segments/strategies", SetStrategySegmentsView.as_view()),
    path("segments/strategies/<str:strategy_id>", StrategySegmentsView.as_view()),
    path("segments/<str:segment_id>", SegmentView.as_view()),
    path("segments/<str:segment_id>/strategies", SegmentStrategiesView.as_view()),
]
