"""/api/admin/projects/:projectId/features/:name/revert: a flag becomes what one of its versions was."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import ListOf, validate_body
from flagadmin.core.http.openapi import refusal
from flagadmin.core.http.timestamps import iso
from groups.access import missing
from groups.authentication import ApiRequest
from projects.flags.flag_document import read_flag_document
from projects.flags.revert.actions import revert_flag
from projects.flags.revert.plan import (
    PERMISSIONS,
    Choice,
    Target,
    check_environments,
    find_target,
    may_revert,
    plan_revert,
)
from projects.flags.serializers import FlagRecord
from projects.history.past import is_in_future
from projects.history.versions import present_version
from projects.models import Segment
from projects.reverts.serializers import PartRecord, make_part_record
from projects.serializers import StrictSerializer
from projects.viewsets import OnFlagViewSet

EVENT = (
    "An audit event of the flag (`GET /api/admin/events/{flag}`): its version is what the flag was after it."
)
AT = "A moment in the past, instead of an event. Without an offset, it is in UTC."
TO_EVENT = OpenApiExample("To the version after an event", {"event": 4711}, request_only=True)
IN_ONE = OpenApiExample(
    "Only what production had yesterday",
    {
        "at": "2026-11-21T14:03:00Z",
        "environments": ["production"],
        "dependencies": False,
        "details": False,
    },
    request_only=True,
)


class VersionQuery(StrictSerializer):
    event = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1, help_text=EVENT)
    at = serializers.DateTimeField(required=False, help_text=AT)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs.keys() & {"event", "at"}) != 1:
            raise serializers.ValidationError({"event": "give either event or at"})
        if "at" in attrs and is_in_future(attrs["at"]):
            raise serializers.ValidationError({"at": "must not be in the future"})
        return attrs


class RevertBody(VersionQuery):
    environments = ListOf(
        child=serializers.CharField(max_length=255),
        required=False,
        help_text="Revert these environments. By default all that the project used then.",
    )
    dependencies = serializers.BooleanField(default=True, help_text="Revert the flags that it depends on.")
    details = serializers.BooleanField(
        default=True, help_text="Revert description, type, stale and impression data."
    )


class RevertPreview(serializers.Serializer):
    event = serializers.IntegerField(allow_null=True)
    at = serializers.DateTimeField()
    parts = PartRecord(many=True, help_text="The parts that differ from the version.")


class RevertViewSet(ETagMixin, OnFlagViewSet):
    tags = ("Features",)
    permissions = {"create": PERMISSIONS}
    tagged = frozenset({"list"})
    conditional = frozenset({"create"})

    def check_permission(self, *, project: str | None = None, environment: str | None = None) -> None:
        """What it needs in which environment depends on what differs; none of it is enough for nothing."""
        if self.needed_permissions and project is not None and not may_revert(self.caller, project):
            raise missing(self.needed_permissions, project=project)

    def get_current_document(self) -> dict[str, Any]:
        return present_version(self.flag)

    @extend_schema(
        operation_id="previewRevert",
        parameters=[
            OpenApiParameter("event", int, description=EVENT),
            OpenApiParameter("at", str, description=AT),
        ],
        responses={200: RevertPreview},
    )
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List what reverting the flag to a version would change, and what cannot be restored. Changes nothing."""
        query = {key: request.query_params[key] for key in ("event", "at") if key in request.query_params}
        target = self.target(validate_body(VersionQuery(data=query)))
        plan = plan_revert(self.flag, target, caller=self.caller)
        used = {segment for planned in plan.parts for segment in planned.part.used_segments()}
        segments = dict(Segment.objects.filter(pk__in=used).values_list("pk", "name"))
        parts = [make_part_record(planned, segments) for planned in plan.parts]
        return Response({"event": target.event, "at": iso(target.at), "parts": parts})

    @extend_schema(
        operation_id="revertFeature",
        request=RevertBody,
        responses={
            200: FlagRecord,
            409: refusal(
                409, "Something cannot be restored, such as a deleted segment: `details` names all."
            ),
        },
        examples=[TO_EVENT, IN_ONE],
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Revert the flag to one of its versions: to what it was after one of its audit events, or at a moment.

        Restores switches, strategies with their ids, and variants in all environments, dependencies, description, type,
        stale and impression data, in one transaction with one audit event. Segments, tags and links stay as they are,
        as do environments that the project did not use then. It needs the permissions of what it changes, in each
        environment. If anything cannot be restored, nothing is changed.
        """
        values = self.validated(RevertBody)
        environments = values.get("environments")
        if environments is not None:
            check_environments(environments, self.flag)
        choice = Choice(
            environments=None if environments is None else frozenset(environments),
            dependencies=values["dependencies"],
            details=values["details"],
        )
        target = self.target(values)
        revert_flag(project_id, name, target, choice=choice, expected=self.expected, caller=self.caller)
        self.flag.refresh_from_db()
        return Response(read_flag_document(self.flag, caller=self.caller))

    def target(self, values: dict[str, Any]) -> Target:
        return find_target(self.caller, self.flag, event=values.get("event"), at=values.get("at"))
