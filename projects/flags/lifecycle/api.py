"""/api/admin/projects/:projectId/features/:name/lifecycle: lifecycle stages, and completing a flag."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.http.fields import Body
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.access import access_flag
from projects.flags.lifecycle import actions
from projects.flags.queries import count_stages, read_lifecycle
from projects.flags.serializers import StageRecord
from projects.models import Flag
from projects.project_scope import OnFlagViewSet


class CompletionBody(Body):
    status = serializers.ChoiceField(
        choices=["kept", "discarded"], help_text="Whether the feature stays in the code."
    )
    statusValue = serializers.CharField(
        source="status_value",
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=255,
        help_text="The variant that was kept.",
    )


class StageCounts(serializers.Serializer):
    """Numbers of flags by their current stage."""

    initial = serializers.IntegerField()
    preLive = serializers.IntegerField()
    live = serializers.IntegerField()
    completed = serializers.IntegerField()
    archived = serializers.IntegerField()


class StageCountViewSet(ViewSet):
    tags = ("Features",)

    @extend_schema(operation_id="getFeatureLifecycleCount", responses=StageCounts)
    def list(self, request: ApiRequest) -> Response:
        """Count the flags that the caller can read by their current lifecycle stage."""
        return Response(count_stages(Flag.objects.readable_by(self.caller)))


class LifecycleViewSet(OnFlagViewSet):
    tags = ("Features",)
    permissions = {"complete": Permission.UPDATE_FEATURE, "uncomplete": Permission.UPDATE_FEATURE}

    def find_flag(self, project_id: str, name: str) -> Flag:
        return access_flag(self.caller, project_id, name, archived=None if self.action == "list" else False)

    @extend_schema(operation_id="getFeatureLifecycle", responses={200: StageRecord(many=True)})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the lifecycle stages that the flag has entered. The flag may be archived."""
        return Response(read_lifecycle(self.flag))

    @extend_schema(
        operation_id="completeFeature",
        request=CompletionBody,
        responses={200: None},
        examples=[
            OpenApiExample(
                "One variant was kept", {"status": "kept", "statusValue": "blue"}, request_only=True
            )
        ],
    )
    @action(detail=False, methods=["post"])
    def complete(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Mark the flag as completed: it can be removed from the code. Its evaluation does not change."""
        actions.complete_flag(project_id, name, **self.validated(CompletionBody), caller=self.caller)
        return Response()

    @extend_schema(operation_id="uncompleteFeature", request=None, responses={200: None})
    @action(detail=False, methods=["post"])
    def uncomplete(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Return the flag to the stage that it had before it was completed."""
        actions.uncomplete_flag(project_id, name, caller=self.caller)
        return Response()
