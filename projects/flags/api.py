"""/api/admin/projects/:projectId/features: flags."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import validated
from flagadmin.http.json_patch import PatchOperation, patched_object
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_flag, access_project, check_project
from projects.flags import actions as flags
from projects.flags import archive as archiving
from projects.flags import clone as cloning
from projects.flags import move as moving
from projects.flags.queries import flag_document, flag_summaries, metadata_document
from projects.flags.serializers import (
    CloneBody,
    FlagBody,
    FlagChanges,
    FlagMetadata,
    FlagRecord,
    FlagSummaryList,
    MoveBody,
    NewNameBody,
)
from projects.models import Flag, Project

TAGS = ["Features"]
NEW_FLAG = OpenApiExample(
    "A flag for a release",
    {
        "name": "checkout-redesign",
        "type": "release",
        "description": "The new checkout",
        "impressionData": False,
    },
    request_only=True,
)
PATCHABLE = ("type", "description", "stale", "impressionData")


class FlagsView(APIView):
    @extend_schema(
        operation_id="getFeatures", tags=TAGS, responses={200: FlagSummaryList} | refusals(403, 404)
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """The active flags of the project, by name."""
        project = access_project(request.user, project_id)
        found = list(Flag.objects.filter(project=project, archived_at=None))
        return Response({"version": 2, "features": flag_summaries(found, caller=request.user)})

    @extend_schema(
        operation_id="createFeature",
        tags=TAGS,
        request=FlagBody,
        responses={201: FlagMetadata} | refusals(400, 403, 404, 409, 415),
        examples=[NEW_FLAG],
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Create a flag, off in every environment of the project."""
        access_project(request.user, project_id, Permission.CREATE_FEATURE)
        values = validated(FlagBody(data=request.data))
        values["tags"] = [(tag["type"], tag["value"]) for tag in values.get("tags") or []]
        flag = flags.create_flag(project_id, flags.NewFlag(**values), caller=request.user)
        return Response(metadata_document(flag), status=201)


class FlagView(APIView):
    @extend_schema(
        operation_id="getFeature",
        tags=TAGS,
        parameters=[
            OpenApiParameter("variantEnvironments", bool, description="Accepted; variants are always shown.")
        ],
        responses={200: FlagRecord} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """An active flag with its environments, strategies, variants, dependencies and links."""
        flag = access_flag(request.user, project_id, name, archived=False)
        return Response(flag_document(flag, caller=request.user))

    @extend_schema(
        operation_id="updateFeature",
        tags=TAGS,
        request=FlagChanges,
        responses={200: FlagMetadata} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Change what is given. The name stays; environments have addresses of their own."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.UPDATE_FEATURE)
        changes = validated(FlagChanges(data=request.data))
        flag = flags.update_flag(project_id, name, changes, caller=request.user)
        return Response(metadata_document(flag))

    @extend_schema(
        operation_id="patchFeature",
        tags=TAGS,
        request=PatchOperation(many=True),
        responses={200: FlagMetadata} | refusals(400, 403, 404, 415),
    )
    def patch(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Change the flag by a JSON Patch on type, description, stale and impressionData."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.UPDATE_FEATURE)
        flag = flags.edit_flag(
            project_id,
            name,
            lambda before: _patch_changes(before, request.data),
            caller=request.user,
        )
        return Response(metadata_document(flag))

    @extend_schema(operation_id="archiveFeature", tags=TAGS, responses={202: None} | refusals(403, 404))
    def delete(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Archive the flag: applications get "off". It can be revived, or deleted for good."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.DELETE_FEATURE)
        archiving.archive_flags(project_id, [name], caller=request.user)
        return Response(status=202)


def _patch_changes(before: dict[str, Any], operations: Any) -> dict[str, Any]:
    """What a patch changes, by model field. Raises ValidationError."""
    after = patched_object(before, operations, PATCHABLE)
    changed = [key for key in PATCHABLE if before.get(key) != after.get(key)]
    return validated(FlagChanges(data={key: after.get(key) for key in changed}))


class MoveFlagView(APIView):
    @extend_schema(
        operation_id="changeProject",
        tags=TAGS,
        request=MoveBody,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Move the flag to another project, with everything on it."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.MOVE_FEATURE_TOGGLE)
        target = validated(MoveBody(data=request.data))["newProjectId"]
        moving.move_flag(project_id, name, target, caller=request.user)
        return Response()


class CloneFlagView(APIView):
    @extend_schema(
        operation_id="cloneFeature",
        tags=TAGS,
        request=CloneBody,
        responses={201: FlagMetadata} | refusals(400, 403, 404, 409, 415),
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Make a flag like this one, off in every environment, with its strategies, variants and tags."""
        access_flag(request.user, project_id, name, archived=False, permission=Permission.CREATE_FEATURE)
        values = validated(CloneBody(data=request.data))
        flag = cloning.clone_flag(
            project_id,
            name,
            values["name"],
            replace_group_id=values["replaceGroupId"],
            caller=request.user,
        )
        return Response(metadata_document(flag), status=201)


class ValidateFlagView(APIView):
    @extend_schema(
        operation_id="validateFeature",
        tags=TAGS,
        request=NewNameBody,
        responses={200: None} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether a flag of this name could be created."""
        values = validated(NewNameBody(data=request.data))
        project = Project()
        if values.get("projectId"):
            project = check_project(request.user, values["projectId"], "projectId")
        flags.check_new_name(project, values["name"], caller=request.user)
        return Response()


PROJECT = "projects/<str:project_id>"
FLAG = f"{PROJECT}/features/<str:name>"
urlpatterns = [
    path("features/validate", ValidateFlagView.as_view()),
    path(f"{PROJECT}/features", FlagsView.as_view()),
    path(FLAG, FlagView.as_view()),
    path(f"{FLAG}/changeProject", MoveFlagView.as_view()),
    path(f"{FLAG}/clone", CloneFlagView.as_view()),
]
