"""/api/admin/projects/:projectId/features: list, create, change, archive, move and clone flags."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import PatchOperation, make_patch_example, patch_object, validate_body
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.access import check_project
from projects.flags import actions as flags
from projects.flags.archive import actions as archiving
from projects.flags.copies import clone as cloning
from projects.flags.copies import move as moving
from projects.flags.flag_document import read_flag_document
from projects.flags.queries import list_flag_summaries, make_metadata_answer, make_metadata_document
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
from projects.history.definitions_at import make_seen_version
from projects.models import Flag, Project
from projects.viewsets import OnFlagViewSet

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
PATCHABLE = ("type", "description", "stale", "impressionData", "owner")


class FlagViewSet(ETagMixin, OnFlagViewSet):
    tags = ("Features",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.CREATE_FEATURE,
        "update": Permission.UPDATE_FEATURE,
        "partial_update": Permission.UPDATE_FEATURE,
        "destroy": Permission.DELETE_FEATURE,
        "change_project": Permission.MOVE_FEATURE_TOGGLE,
        "clone": Permission.CREATE_FEATURE,
    }

    def get_current_document(self) -> dict[str, Any]:
        return make_metadata_document(self.flag)

    @extend_schema(operation_id="getFeatures", responses={200: FlagSummaryList})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """List the active flags of a project, sorted by name."""
        flags = list(Flag.objects.active().filter(project=self.project))
        return Response({"version": 2, "features": list_flag_summaries(flags, caller=self.caller)})

    @extend_schema(
        operation_id="createFeature", request=FlagBody, responses={201: FlagMetadata}, examples=[NEW_FLAG]
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:
        """Create a flag that is off in every environment of the project."""
        values = self.validated(FlagBody)
        values["tags"] = [(tag["type"], tag["value"]) for tag in values.get("tags") or []]
        flag = flags.create_flag(project_id, flags.NewFlag(**values), caller=self.caller)
        return Response(make_metadata_answer(flag), status=201)

    @extend_schema(
        operation_id="getFeature",
        parameters=[
            OpenApiParameter("variantEnvironments", bool, description="Accepted; variants are always shown.")
        ],
        responses={200: FlagRecord},
    )
    def retrieve(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Get an active flag with its environments, strategies, variants, dependencies and links."""
        document = read_flag_document(self.flag, caller=self.caller)
        # The details, for changes of these, and everything that a revert may change.
        whole = make_seen_version(document, [place["name"] for place in document["environments"]])
        self.version = f"{self.version}.{hash_document(whole)}"
        return Response(document)

    @extend_schema(operation_id="updateFeature", request=FlagChanges, responses={200: FlagMetadata})
    def update(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Update a flag. Omitted properties keep their values; the name cannot be changed."""
        changes, expected = self.validated(FlagChanges), self.expected
        flag = flags.update_flag(project_id, name, changes, expected=expected, caller=self.caller)
        return Response(make_metadata_answer(flag))

    @extend_schema(
        operation_id="patchFeature",
        request=PatchOperation(many=True),
        responses={200: FlagMetadata},
        examples=[make_patch_example("/description", "The new checkout")],
    )
    def partial_update(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Change the flag's type, description, stale, impressionData or owner with a JSON Patch."""
        flag = flags.edit_flag(
            project_id,
            name,
            lambda before: _read_patch(before, request.data),
            expected=self.expected,
            caller=self.caller,
        )
        return Response(make_metadata_answer(flag))

    @extend_schema(operation_id="archiveFeature", responses={202: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Archive the flag, which turns it off everywhere. It can be revived or permanently deleted."""
        archiving.archive_flags(project_id, [name], expected=self.expected, caller=self.caller)
        return Response(status=202)

    @extend_schema(operation_id="changeProject", request=MoveBody, responses={200: None})
    @action(detail=True, methods=["post"], url_path="changeProject")
    def change_project(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Move the flag, with all its data, to another project."""
        moving.move_flag(project_id, name, self.validated(MoveBody)["newProjectId"], caller=self.caller)
        return Response()

    @extend_schema(operation_id="cloneFeature", request=CloneBody, responses={201: FlagMetadata})
    @action(detail=True, methods=["post"])
    def clone(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Copy the flag with its strategies, variants and tags. The copy is off in every environment."""
        values = self.validated(CloneBody)
        flag = cloning.clone_flag(
            project_id,
            name,
            values["name"],
            replace_group_id=values["replaceGroupId"],
            caller=self.caller,
        )
        return Response(make_metadata_answer(flag), status=201)


def _read_patch(before: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The changes made by a JSON Patch, by model field. Raises ValidationError."""
    after = patch_object(before, operations, PATCHABLE)
    changed = [key for key in PATCHABLE if before.get(key) != after.get(key)]
    return validate_body(FlagChanges(data={key: after.get(key) for key in changed}))


class FlagNameViewSet(ViewSet):
    tags = ("Features",)
    permissions = {"validate": None}

    @extend_schema(operation_id="validateFeature", request=NewNameBody, responses={200: None})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a flag with this name could be created."""
        values = self.validated(NewNameBody)
        project = Project()
        if values.get("projectId"):
            project = check_project(self.caller, values["projectId"], "projectId")
        flags.check_new_name(project, values["name"], caller=self.caller)
        return Response()
