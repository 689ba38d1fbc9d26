"""…/features/:name/dependencies: which flags a flag needs."""

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_flag
from projects.flags import dependencies as actions
from projects.flags.serializers import ParentRecord

TAGS = ["Dependencies"]
EXAMPLE = OpenApiExample("Needs a parent that is on", {"feature": "checkout-redesign"}, request_only=True)


class DependenciesView(APIView):
    @extend_schema(
        operation_id="addFeatureDependency",
        tags=TAGS,
        request=ParentRecord,
        responses={200: None} | refusals(400, 403, 404, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Make the flag depend on a parent of the same project, or change how it does."""
        access_flag(
            request.user,
            project_id,
            name,
            archived=False,
            permission=Permission.UPDATE_FEATURE_DEPENDENCY,
        )
        given = validated(ParentRecord(data=request.data))
        actions.add_dependency(project_id, name, given, caller=request.user)
        return Response()

    @extend_schema(
        operation_id="deleteFeatureDependencies", tags=TAGS, responses={200: None} | refusals(403, 404)
    )
    def delete(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Remove all parents."""
        actions.clear_dependencies(project_id, name, caller=request.user)
        return Response()


class DependencyView(APIView):
    @extend_schema(
        operation_id="deleteFeatureDependency", tags=TAGS, responses={200: None} | refusals(403, 404)
    )
    def delete(self, request: ApiRequest, project_id: str, name: str, parent: str) -> Response:
        actions.remove_dependency(project_id, name, parent, caller=request.user)
        return Response()


class ParentsView(APIView):
    @extend_schema(
        operation_id="listParentOptions",
        tags=TAGS,
        responses={200: {"type": "array", "items": {"type": "string"}}} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Names of the flags this one could depend on."""
        return Response(actions.possible_parents(project_id, name, caller=request.user))


class ParentVariantsView(APIView):
    @extend_schema(
        operation_id="listParentVariantOptions",
        tags=TAGS,
        responses={200: {"type": "array", "items": {"type": "string"}}} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Names of the variants that a flag depending on this one could ask for."""
        return Response(actions.variant_names(project_id, name, caller=request.user))


class ProjectDependenciesView(APIView):
    @extend_schema(
        operation_id="checkDependenciesExist",
        tags=TAGS,
        responses={200: {"type": "boolean"}} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """Whether a flag of the project depends on another one."""
        return Response(actions.uses_dependencies(project_id, caller=request.user))


PROJECT = "projects/<str:project_id>"
FLAG = f"{PROJECT}/features/<str:name>"
urlpatterns = [
    path(f"{FLAG}/dependencies", DependenciesView.as_view()),
    path(f"{FLAG}/dependencies/<str:parent>", DependencyView.as_view()),
    path(f"{FLAG}/parents", ParentsView.as_view()),
    path(f"{FLAG}/parent-variants", ParentVariantsView.as_view()),
    path(f"{PROJECT}/dependencies", ProjectDependenciesView.as_view()),
]
