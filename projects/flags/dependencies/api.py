"""/api/admin/projects/:projectId/features/:name/dependencies: the parents that a flag depends on."""

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.flags.dependencies import actions
from projects.flags.serializers import ParentRecord
from projects.project_scope import InProjectViewSet, OnFlagViewSet

EXAMPLE = OpenApiExample("Needs a parent that is on", {"feature": "checkout-redesign"}, request_only=True)


NAMES = {"type": "array", "items": {"type": "string"}}


class DependencyViewSet(OnFlagViewSet):
    tags = ("Dependencies",)
    lookup_url_kwarg = "parent"
    permissions = {
        "create": Permission.UPDATE_FEATURE_DEPENDENCY,
        "clear": Permission.UPDATE_FEATURE_DEPENDENCY,
        "destroy": Permission.UPDATE_FEATURE_DEPENDENCY,
    }

    @extend_schema(
        operation_id="addFeatureDependency", request=ParentRecord, responses={200: None}, examples=[EXAMPLE]
    )
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Make the flag depend on a parent in the same project, or update an existing dependency."""
        actions.add_dependency(project_id, name, self.validated(ParentRecord), caller=self.caller)
        return Response()

    @extend_schema(operation_id="deleteFeatureDependencies", responses={200: None})
    def clear(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Remove all parents of the flag."""
        actions.clear_dependencies(project_id, name, caller=self.caller)
        return Response()

    @extend_schema(operation_id="deleteFeatureDependency", responses={200: None})
    def destroy(self, request: ApiRequest, project_id: str, name: str, parent: str) -> Response:
        """Remove one parent of the flag."""
        actions.remove_dependency(project_id, name, parent, caller=self.caller)
        return Response()


class ParentOptionViewSet(OnFlagViewSet):
    tags = ("Dependencies",)
    lookup_url_kwarg = "name"

    @extend_schema(operation_id="listParentOptions", responses={200: NAMES})
    @action(detail=True)
    def parents(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the names of the flags that this flag can depend on."""
        return Response(actions.list_possible_parents(self.flag))


class ParentVariantViewSet(InProjectViewSet):
    tags = ("Dependencies",)

    @extend_schema(operation_id="listParentVariantOptions", responses={200: NAMES})
    def list(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """List the names of the variants that a dependency on this flag can require.

        There are none if there is no such flag: clients ask before one is chosen.
        """
        return Response(actions.list_parent_variants(self.project, name))


class ProjectDependencyViewSet(InProjectViewSet):
    tags = ("Dependencies",)

    @extend_schema(operation_id="checkDependenciesExist", responses={200: {"type": "boolean"}})
    def list(self, request: ApiRequest, project_id: str) -> Response:
        """Check whether any flag of the project depends on another flag."""
        return Response(actions.uses_dependencies(self.project))
