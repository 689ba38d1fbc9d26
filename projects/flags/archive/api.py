"""/api/admin/archive: list, revive and delete archived flags."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.access import access_project
from projects.flags.actions import access_named_flag
from projects.flags.archive import actions
from projects.flags.queries import make_metadata_answer
from projects.flags.serializers import FlagMetadata
from projects.models import Flag, FlagQuerySet


class ArchivedFlags(serializers.Serializer):
    version = serializers.IntegerField()
    features = FlagMetadata(many=True)


class ArchiveViewSet(ViewSet):
    lookup_url_kwarg = "name"
    permissions = {
        "destroy": Permission.DELETE_FEATURE,
        "destroy_features": Permission.DELETE_FEATURE,
        "revive": Permission.UPDATE_FEATURE,
    }
    flag: Flag

    def authorize(self, name: str | None = None, project_id: str | None = None) -> None:
        name = "features" if self.action == "destroy_features" else name
        if name is not None:
            self.flag = access_named_flag(self.caller, name)
            self.check_permission(project=self.flag.project_id)

    @extend_schema(operation_id="getArchivedFeatures", tags=["Archive"], responses={200: ArchivedFlags})
    @action(detail=False, url_path="features")
    def everywhere(self, request: ApiRequest) -> Response:
        """List all archived flags that the caller can read, sorted by name."""
        return _answer(Flag.objects.readable_by(self.caller))

    @extend_schema(exclude=True)
    @everywhere.mapping.delete
    def destroy_features(self, request: ApiRequest) -> Response:
        """Permanently delete the archived flag whose name is ``features``."""
        return self.destroy(request, "features")

    @extend_schema(
        operation_id="getArchivedFeaturesByProjectId", tags=["Archive"], responses={200: ArchivedFlags}
    )
    @action(detail=False, url_path="features/<str:project_id>")
    def in_project(self, request: ApiRequest, project_id: str) -> Response:
        """List the archived flags of a project, sorted by name."""
        return _answer(Flag.objects.filter(project=access_project(self.caller, project_id)))

    @extend_schema(operation_id="reviveFeature", tags=["Features"], request=None, responses={200: None})
    @action(detail=False, methods=["post"], url_path="revive/<str:name>")
    def revive(self, request: ApiRequest, name: str) -> Response:
        """Revive one archived flag, turned off in every environment."""
        actions.revive_flags(self.flag.project_id, [name], caller=self.caller)
        return Response()

    @extend_schema(operation_id="deleteFeature", tags=["Features"], responses={200: None})
    def destroy(self, request: ApiRequest, name: str) -> Response:
        """Permanently delete one archived flag. An active one is refused."""
        actions.delete_flags(self.flag.project_id, [name], caller=self.caller)
        return Response()


def _answer(flags: FlagQuerySet) -> Response:
    archived_flags = flags.archived().order_by("name").select_related("owner_user", "owner_group")
    return Response({"version": 2, "features": [make_metadata_answer(flag) for flag in archived_flags]})
