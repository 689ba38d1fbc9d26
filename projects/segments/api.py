"""/api/admin/segments: named lists of constraints that strategies share."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.response import Response

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import ContentTypeNotAccepted, NameExists
from flagadmin.core.http.fields import Body, ListOf, NameBody, path_id
from flagadmin.core.http.openapi import refusal
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project
from projects.models import Flag, Segment, Strategy
from projects.project_scope import ScopedViewSet
from projects.segments import actions, source_task
from projects.segments.list_serializers import (
    CSV_EXAMPLE,
    SOURCE_EXAMPLE,
    TEXT,
    CsvParser,
    LinesParser,
    ListBody,
    ListChanged,
    ListParser,
    ListQuery,
    ListRecord,
    ListSourceBody,
    ListSourceRecord,
    changed_document,
    list_document,
    read_sent,
    record_source,
)
from projects.segments.lists import BODY_LIMIT
from projects.strategies.actions import update_strategy
from projects.strategies.serializers import ConstraintBody
from projects.used_by.queries import UNUSED, count_segment_usage, list_segment_uses
from projects.used_by.serializers import SegmentUses


class SegmentChanges(Body):
    name = serializers.CharField(max_length=255, required=False)
    description = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    constraints = ConstraintBody(many=True, required=False, help_text="All must be met.")
    project = serializers.CharField(
        source="project_id",
        required=False,
        allow_null=True,
        help_text="The project that the segment belongs to; null: global.",
    )


class SegmentBody(SegmentChanges):
    name = serializers.CharField(max_length=255)
    constraints = ConstraintBody(many=True, help_text="All must be met.")


class SegmentRecord(SegmentBody):
    id = serializers.IntegerField()
    createdBy = serializers.CharField()
    createdAt = serializers.DateTimeField()
    usedInFeatures = serializers.IntegerField(
        required=False, help_text="Number of active flags with a strategy that uses it."
    )
    usedInProjects = serializers.IntegerField(required=False)


class SegmentList(serializers.Serializer):
    segments = SegmentRecord(many=True)


class UsesOfSegment(SegmentUses):
    changeRequestStrategies = serializers.ListField(
        child=serializers.DictField(),
        help_text="Always empty: changes of open change requests are not among them.",
    )


class StrategySegmentsBody(Body):
    projectId = serializers.CharField()
    environmentId = serializers.CharField()
    strategyId = serializers.CharField()
    segmentIds = ListOf(
        child=serializers.IntegerField(), help_text="Replace the segments that the strategy has."
    )


class SegmentViewSet(ETagMixin, ScopedViewSet):
    tags = ("Segments",)
    lookup_url_kwarg = "segment_id"
    permissions = {
        "create": Permission.CREATE_SEGMENT,
        "validate": Permission.CREATE_SEGMENT,
        "update": Permission.UPDATE_SEGMENT,
        "destroy": Permission.DELETE_SEGMENT,
        "replace_values": Permission.UPDATE_SEGMENT,
        "set_source": Permission.UPDATE_SEGMENT,
        "remove_source": Permission.UPDATE_SEGMENT,
        "fetch_list": Permission.UPDATE_SEGMENT,
        "set_of_strategy": None,  # checked in the view: UPDATE_FEATURE_STRATEGY in the project of the body
    }
    permission_in_project = Permission.UPDATE_PROJECT_SEGMENT
    tagged = ETagMixin.tagged | {"list_values", "source"}
    conditional = ETagMixin.conditional | {"replace_values", "set_source", "remove_source"}
    segment: Segment

    def authorize(self, segment_id: str | None = None, strategy_id: str | None = None) -> None:
        if segment_id is not None:
            self.segment = actions.access_segment(self.caller, path_id(segment_id, "Segment"))
            self.check_permission(project=self.segment.project_id)
        else:
            self.check_permission(project=self.named_project if self.action == "create" else None)

    def get_current_document(self) -> Mapping[str, Any]:
        if self.action == "source":
            return source_task.source_document(source_task.find_source(self.segment.pk))
        return self.segment.document()

    @extend_schema(operation_id="getSegments", responses={200: SegmentList})
    def list(self, request: ApiRequest) -> Response:
        """List the segments that the caller may read, by name."""
        usage = count_segment_usage(self.caller)
        segments = Segment.objects.readable_by(self.caller)
        return Response({"segments": [s.document() | usage.get(s.pk, UNUSED) for s in segments]})

    @extend_schema(operation_id="createSegment", request=SegmentBody, responses={201: SegmentRecord})
    def create(self, request: ApiRequest) -> Response:
        """Create a segment, global or of one project."""
        body = self.validated(SegmentBody)
        actions.check_typed(body["constraints"])
        segment = actions.create_segment(body, caller=self.caller)
        headers = {"Location": f"segments/{segment.pk}"}
        return Response(segment.document(), status=201, headers=headers)

    @extend_schema(operation_id="validateSegment", request=NameBody, responses={204: None})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a segment of this name could be created."""
        name = self.validated(NameBody)["name"]
        if Segment.objects.filter(name=name).exists():
            raise NameExists(f"A segment named {name} already exists.")
        return Response(status=204)

    @extend_schema(operation_id="getSegment", responses={200: SegmentRecord})
    def retrieve(self, request: ApiRequest, segment_id: str) -> Response:
        """Get a segment, and how often it is used."""
        usage = count_segment_usage(self.caller).get(self.segment.pk, UNUSED)
        return Response(self.segment.document() | usage)

    @extend_schema(operation_id="updateSegment", request=SegmentChanges, responses={204: None})
    def update(self, request: ApiRequest, segment_id: str) -> Response:
        """Update a segment. Omitted properties keep their values.

        A segment that strategies of other projects use cannot be moved to a project.
        """
        changes, expected = self.validated(SegmentChanges), self.expected
        actions.check_typed(changes.get("constraints", ()), self.segment.constraints)
        actions.update_segment(self.segment.pk, changes, expected=expected, caller=self.caller)
        return Response(status=204)

    @extend_schema(
        operation_id="removeSegment",
        responses={
            204: None,
            409: refusal(409, "Strategies use the segment; the message names the flags and projects."),
        },
    )
    def destroy(self, request: ApiRequest, segment_id: str) -> Response:
        """Delete a segment that no strategy uses."""
        actions.delete_segment(self.segment.pk, expected=self.expected, caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="getSegmentList", responses={200: ListRecord})
    @action(
        detail=True,
        url_path="list",
        body_limit=BODY_LIMIT,
        parser_classes=[ListParser, LinesParser, CsvParser],
    )
    def list_values(self, request: ApiRequest, segment_id: str) -> Response:
        """Get the list of a segment: the values of its first constraint, if that is IN."""
        return Response(list_document(self.segment))

    @extend_schema(
        operation_id="replaceSegmentList",
        parameters=[ListQuery],
        request={"application/json": ListBody, "text/plain": TEXT, "text/csv": TEXT},
        responses={200: ListChanged},
        examples=[
            OpenApiExample(
                "Two users", {"values": ["42", "7"]}, request_only=True, media_type="application/json"
            ),
            OpenApiExample("One per line", "42\n7\n", request_only=True, media_type="text/plain"),
            OpenApiExample("A column of CSV", CSV_EXAMPLE, request_only=True, media_type="text/csv"),
        ],
    )
    @list_values.mapping.put
    def replace_values(self, request: ApiRequest, segment_id: str) -> Response:
        """Replace the list of a segment, add to it or remove from it.

        The body is text with one value per line, CSV with a header, or JSON. A segment without constraints gets one.
        """
        serializer = ListQuery(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        query = serializer.validated_data
        try:
            sent = read_sent(request.data, query, self.segment)
        except UnsupportedMediaType as error:
            raise ContentTypeNotAccepted(
                f"Send text/plain, text/csv or application/json. {error.detail}"
            ) from error
        if query["dryRun"]:
            constraints, difference = actions.change_list(self.segment.constraints, sent, query["mode"])
            self.segment.constraints = constraints
            actions.check_segment(self.segment)
            return Response(changed_document(self.segment, constraints, difference))
        segment, difference = actions.update_list(
            self.segment.pk, sent, mode=query["mode"], expected=self.expected, caller=self.caller
        )
        return Response(changed_document(segment, segment.constraints, difference))

    @extend_schema(operation_id="getSegmentListSource", responses={200: ListSourceRecord})
    @action(detail=True, url_path="list/source")
    def source(self, request: ApiRequest, segment_id: str) -> Response:
        """Get the URL that the list of a segment is kept in step with, and what came of the last fetch."""
        return Response(record_source(source_task.find_source(self.segment.pk)))

    @extend_schema(
        operation_id="setSegmentListSource",
        request=ListSourceBody,
        responses={200: ListSourceRecord},
        examples=[SOURCE_EXAMPLE],
    )
    @source.mapping.put
    def set_source(self, request: ApiRequest, segment_id: str) -> Response:
        """Keep the list of a segment in step with a URL, from now on, with the rights that you then have.

        A list that is empty or shrinks by more than half is not applied, nor one that needs a change request.
        """
        values, expected = self.validated(ListSourceBody), self.expected
        source_task.set_source(self.segment.pk, values, expected=expected, caller=self.caller)
        return Response(record_source(source_task.find_source(self.segment.pk)))

    @extend_schema(operation_id="removeSegmentListSource", responses={204: None})
    @source.mapping.delete
    def remove_source(self, request: ApiRequest, segment_id: str) -> Response:
        """No longer fetch the list of a segment. The list stays as it is."""
        source_task.set_source(self.segment.pk, None, expected=self.expected, caller=self.caller)
        return Response(status=204)

    @extend_schema(operation_id="fetchSegmentList", request=None, responses={202: ListSourceRecord})
    @action(detail=True, methods=["post"], url_path="list/source/fetch")
    def fetch_list(self, request: ApiRequest, segment_id: str) -> Response:
        """Fetch the list of a segment from its URL now: within seconds, `checkedAt` of its source changes."""
        source = source_task.fetch_soon(self.segment.pk, caller=self.caller)
        return Response(record_source(source), status=202)

    @extend_schema(operation_id="getStrategiesBySegmentId", responses={200: UsesOfSegment})
    @action(detail=True)
    def strategies(self, request: ApiRequest, segment_id: str) -> Response:
        """List the strategies of active flags, and the default strategies, that use this segment."""
        return Response(list_segment_uses(self.segment.pk, self.caller) | {"changeRequestStrategies": []})

    @extend_schema(
        operation_id="updateFeatureStrategySegments",
        request=StrategySegmentsBody,
        responses={201: StrategySegmentsBody},
    )
    @action(detail=False, methods=["post"], url_path="strategies")
    def set_of_strategy(self, request: ApiRequest) -> Response:
        """Replace the segments of a strategy."""
        body = self.validated(StrategySegmentsBody)
        project, environment = body["projectId"], body["environmentId"]
        access_project(self.caller, project)
        self.caller.check(Permission.UPDATE_FEATURE_STRATEGY, project=project, environment=environment)
        strategies = Strategy.objects.filter(flag__project=project).select_related("flag")
        message = f"Strategy with id {body['strategyId']} not found in project {project}."
        name = get_or_404(strategies, message, pk=body["strategyId"]).flag.name
        changes = {"segments": body["segmentIds"]}
        update_strategy(project, name, environment, body["strategyId"], changes, caller=self.caller)
        return Response(body, status=201)

    @extend_schema(operation_id="getSegmentsByStrategyId", responses={200: SegmentList})
    @action(detail=False, url_path="strategies/<str:strategy_id>")
    def of_strategy(self, request: ApiRequest, strategy_id: str) -> Response:
        """List the segments of one strategy."""
        flags = Flag.objects.readable_by(self.caller)
        strategies = Strategy.objects.filter(flag__in=flags)
        message = f"Strategy with id {strategy_id} not found."
        strategy = get_or_404(strategies, message, pk=strategy_id)
        segments = strategy.segments.order_by("strategy_links__id")
        return Response({"segments": [segment.document() for segment in segments]})
