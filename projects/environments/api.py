"""/api/admin/environments and /api/admin/projects/:projectId/environments."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import NameExists, ValidationError
from flagadmin.http.fields import MOST_ITEMS, Body, MapOf, NameBody, validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_environment, access_project
from projects.environments import actions
from projects.models import Environment
from projects.projects import environments as project_actions
from projects.projects.queries import (
    environment_document,
    environment_summaries,
    project_environment_summaries,
)
from projects.shared_rules import name_problems
from projects.strategies.serializers import StrategyBody

TAGS = ["Environments"]
LARGEST = 2**31 - 1


class EnvironmentChanges(Body):
    type = serializers.CharField(required=False, help_text="For example development, test or production.")
    enabled = serializers.BooleanField(required=False, help_text="Whether new projects use it. Default true.")
    sortOrder = serializers.IntegerField(
        source="sort_order", required=False, min_value=0, max_value=LARGEST, help_text="Default 9999."
    )


class NewEnvironment(EnvironmentChanges):
    name = serializers.CharField(help_text="1 to 100 of letters, digits and - . _ ~")
    type = serializers.CharField(help_text="For example development, test or production.")


class EnvironmentRecord(NewEnvironment):
    protected = serializers.BooleanField()
    projectCount = serializers.IntegerField(required=False, help_text="Projects that use it.")
    apiTokenCount = serializers.IntegerField(required=False)
    enabledToggleCount = serializers.IntegerField(required=False, help_text="Active flags on in it.")


class EnvironmentList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Of this format: 1.")
    environments = EnvironmentRecord(many=True)


class ProjectEnvironmentRecord(serializers.Serializer):
    name = serializers.CharField()
    type = serializers.CharField()
    sortOrder = serializers.IntegerField()
    enabled = serializers.BooleanField()
    protected = serializers.BooleanField()
    projectApiTokenCount = serializers.IntegerField()
    projectEnabledToggleCount = serializers.IntegerField()
    visible = serializers.BooleanField(help_text="Whether the project uses it.")
    defaultStrategy = StrategyBody(allow_null=True)


class ProjectEnvironmentList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Of this format: 1.")
    environments = ProjectEnvironmentRecord(many=True)


class ProjectEnvironmentBody(Body):
    environment = serializers.CharField()
    defaultStrategy = StrategyBody(required=False, allow_null=True)


class EnvironmentsView(APIView):
    @extend_schema(
        operation_id="getAllEnvironments", tags=TAGS, responses={200: EnvironmentList} | refusals(403)
    )
    def get(self, request: ApiRequest) -> Response:
        """All environments in their order, with counts over the projects the caller may read."""
        allowed = request.user.readable_projects
        projects = None if allowed is None else sorted(allowed)
        shown = environment_summaries(Environment.objects.all(), projects=projects)
        return Response({"version": 1, "environments": shown})

    @extend_schema(
        operation_id="createEnvironment",
        tags=TAGS,
        request=NewEnvironment,
        responses={201: EnvironmentRecord} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        request.user.check(Permission.ADMIN)
        values = validated(NewEnvironment(data=request.data))
        environment = actions.create_environment(values, caller=request.user)
        return Response(environment_document(environment), status=201)


class ValidateEnvironmentView(APIView):
    @extend_schema(
        operation_id="validateEnvironmentName",
        tags=TAGS,
        request=NameBody,
        responses={200: None} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether an environment of this name could be created."""
        request.user.check(Permission.ADMIN)
        name = validated(NameBody(data=request.data))["name"]
        if problems := list(name_problems(name)):
            raise ValidationError.of(problems)
        if Environment.objects.filter(pk=name).exists():
            raise NameExists(f"An environment named {name} already exists.")
        return Response()


class EnvironmentView(APIView):
    @extend_schema(
        operation_id="getEnvironment", tags=TAGS, responses={200: EnvironmentRecord} | refusals(403, 404)
    )
    def get(self, request: ApiRequest, name: str) -> Response:
        return Response(environment_document(access_environment(name)))

    @extend_schema(
        operation_id="removeEnvironment",
        tags=TAGS,
        responses={200: None}
        | refusals(403, 404, descriptions={409: "Projects or tokens use it; the message names them."}),
    )
    def delete(self, request: ApiRequest, name: str) -> Response:
        actions.delete_environment(name, caller=request.user)
        return Response()


class UpdateEnvironmentView(APIView):
    @extend_schema(
        operation_id="updateEnvironment",
        tags=TAGS,
        request=EnvironmentChanges,
        responses={200: EnvironmentRecord} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, name: str) -> Response:
        """Change what is given; the name stays."""
        access_environment(name)
        request.user.check(Permission.ADMIN)
        changes = validated(EnvironmentChanges(data=request.data))
        return Response(environment_document(actions.update_environment(name, changes, caller=request.user)))


class SortOrderView(APIView):
    @extend_schema(
        operation_id="updateSortOrder",
        tags=TAGS,
        request={
            "application/json": {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 0, "maximum": LARGEST},
                "minProperties": 1,
                "maxProperties": MOST_ITEMS,
            }
        },
        responses={200: None} | refusals(400, 403, 415),
        examples=[OpenApiExample("Two", {"development": 1, "production": 2}, request_only=True)],
    )
    def put(self, request: ApiRequest) -> Response:
        """Give environments their places, by name."""
        request.user.check(Permission.ADMIN)
        orders: dict[str, Any] = MapOf(
            child=serializers.IntegerField(min_value=0, max_value=LARGEST), allow_empty=False
        ).run_validation(request.data)
        actions.sort_environments(orders, caller=request.user)
        return Response()


class SwitchEnvironmentOnView(APIView):
    enabled = True

    @extend_schema(tags=TAGS, request=None, responses={204: None} | refusals(403, 404))
    def post(self, request: ApiRequest, name: str) -> Response:
        """Whether new projects use the environment. Flags stay as they are."""
        actions.update_environment(name, {"enabled": self.enabled}, caller=request.user)
        return Response(status=204)


class SwitchEnvironmentOffView(SwitchEnvironmentOnView):
    enabled = False


class EnvironmentsOfProjectView(APIView):
    @extend_schema(
        operation_id="getProjectEnvironments",
        tags=TAGS,
        responses={200: ProjectEnvironmentList} | refusals(403, 404),
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """All environments, as they are in one project."""
        project = access_project(request.user, project_id)
        return Response({"version": 1, "environments": project_environment_summaries(project)})


class AddProjectEnvironmentView(APIView):
    @extend_schema(
        operation_id="addEnvironmentToProject",
        tags=TAGS,
        request=ProjectEnvironmentBody,
        responses={200: None} | refusals(400, 403, 404, 409, 415),
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Use an environment in the project."""
        access_project(request.user, project_id)
        request.user.check(Permission.UPDATE_PROJECT, project=project_id)
        body = validated(ProjectEnvironmentBody(data=request.data))
        project_actions.add_environment(
            project_id, body["environment"], default_strategy=body.get("defaultStrategy"), caller=request.user
        )
        return Response()


class RemoveProjectEnvironmentView(APIView):
    @extend_schema(
        operation_id="removeEnvironmentFromProject",
        tags=TAGS,
        responses={200: None}
        | refusals(400, 403, 404, descriptions={409: "Flags are on there; the message names them."}),
    )
    def delete(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """No longer use an environment in the project; a project always uses one."""
        project_actions.remove_environment(project_id, name, caller=request.user)
        return Response()


class DefaultStrategyView(APIView):
    @extend_schema(
        operation_id="addDefaultStrategyToProjectEnvironment",
        tags=TAGS,
        request=StrategyBody,
        responses={200: StrategyBody} | refusals(400, 403, 404, 415),
    )
    def post(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Set what a flag gets that is switched on without a strategy."""
        access_project(request.user, project_id)
        request.user.check_any(project_actions.DEFAULT_STRATEGY_PERMISSIONS, project=project_id)
        strategy = validated(StrategyBody(data=request.data))
        stored = project_actions.set_default_strategy(project_id, name, strategy, caller=request.user)
        return Response(stored)


urlpatterns = [
    path("environments", EnvironmentsView.as_view()),
    path("environments/validate", ValidateEnvironmentView.as_view()),
    path("environments/sort-order", SortOrderView.as_view()),
    path("environments/update/<str:name>", UpdateEnvironmentView.as_view()),
    path("environments/project/<str:project_id>", EnvironmentsOfProjectView.as_view()),
    path("environments/<str:name>", EnvironmentView.as_view()),
    path("environments/<str:name>/on", SwitchEnvironmentOnView.as_view()),
    path("environments/<str:name>/off", SwitchEnvironmentOffView.as_view()),
    path("projects/<str:project_id>/environments", AddProjectEnvironmentView.as_view()),
    path("projects/<str:project_id>/environments/<str:name>", RemoveProjectEnvironmentView.as_view()),
    path("projects/<str:project_id>/environments/<str:name>/default-strategy", DefaultStrategyView.as_view()),
]
