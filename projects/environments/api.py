"""/api/admin/environments and /api/admin/projects/:projectId/environments: manage environments."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts.etags import ETagMixin, make_etag
from flagadmin.core.errors import NameExists, check_problems
from flagadmin.core.http.fields import MAX_ITEMS, Body, MapOf, NameBody
from flagadmin.core.http.openapi import refusal
from groups.viewsets import ApiRequest, Permission, ViewSet
from projects.access import access_environment, access_project
from projects.environments import actions
from projects.environments.actions import RESERVED_ENVIRONMENTS
from projects.models import Environment
from projects.project_scope import InProjectViewSet
from projects.projects import environments as project_actions
from projects.projects.queries import (
    list_environment_summaries,
    list_project_environment_summaries,
    make_environment_document,
)
from projects.rules import name_problems
from projects.strategies.serializers import StrategyBody

MAX_SIZE = 2**31 - 1


class EnvironmentChanges(Body):
    type = serializers.CharField(required=False, help_text="For example development, test or production.")
    enabled = serializers.BooleanField(required=False, help_text="Whether new projects use it. Default true.")
    sortOrder = serializers.IntegerField(
        source="sort_order", required=False, min_value=0, max_value=MAX_SIZE, help_text="Default 9999."
    )


class NewEnvironment(EnvironmentChanges):
    name = serializers.CharField(help_text="1 to 100 of letters, digits and - . _ ~")
    type = serializers.CharField(help_text="For example development, test or production.")


class EnvironmentRecord(NewEnvironment):
    protected = serializers.BooleanField()
    projectCount = serializers.IntegerField(required=False, help_text="Projects that use it.")
    apiTokenCount = serializers.IntegerField(required=False)
    enabledToggleCount = serializers.IntegerField(required=False, help_text="Active flags that are on there.")


class EnvironmentList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
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
    commentRequired = serializers.BooleanField(help_text="Whether changes of flags there need a comment.")


class ProjectEnvironmentSettings(Body):
    commentRequired = serializers.BooleanField(help_text="Whether changes of flags there need a comment.")


class ProjectEnvironmentList(serializers.Serializer):
    version = serializers.IntegerField(help_text="Version of this format: 1.")
    environments = ProjectEnvironmentRecord(many=True)


class ProjectEnvironmentBody(Body):
    environment = serializers.CharField()
    defaultStrategy = StrategyBody(required=False, allow_null=True)


class EnvironmentViewSet(ETagMixin, ViewSet):
    conditional = frozenset({"change", "destroy"})
    tags = ("Environments",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.ADMIN,
        "validate": Permission.ADMIN,
        "sort_order": Permission.ADMIN,
        "change": Permission.ADMIN,
        "destroy": Permission.ADMIN,
        "on": Permission.ADMIN,
        "off": Permission.ADMIN,
    }
    environment: Environment

    def authorize(self, name: str | None = None, **kwargs: Any) -> None:
        if name is not None:
            self.environment = access_environment(name)
        self.check_permission()

    def get_current_document(self) -> Document:
        return make_environment_document(self.environment)

    @extend_schema(operation_id="getAllEnvironments", responses=EnvironmentList)
    def list(self, request: ApiRequest) -> Response:
        """List all environments in sort order. The counts cover the projects that the caller can read."""
        allowed = self.caller.readable_projects
        projects = None if allowed is None else sorted(allowed)
        summaries = list_environment_summaries(projects=projects)
        return Response({"version": 1, "environments": summaries})

    @extend_schema(
        operation_id="createEnvironment", request=NewEnvironment, responses={201: EnvironmentRecord}
    )
    def create(self, request: ApiRequest) -> Response:
        """Create an environment."""
        environment = actions.create_environment(self.validated(NewEnvironment), caller=self.caller)
        return Response(make_environment_document(environment), status=201)

    @extend_schema(operation_id="validateEnvironmentName", request=NameBody, responses={200: None})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether an environment with this name can be created."""
        name = self.validated(NameBody)["name"]
        check_problems(name_problems(name, reserved=RESERVED_ENVIRONMENTS))
        if Environment.objects.filter(pk=name).exists():
            raise NameExists(f"An environment named {name} already exists.")
        return Response()

    @extend_schema(
        operation_id="updateSortOrder",
        request={
            "application/json": {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 0, "maximum": MAX_SIZE},
                "minProperties": 1,
                "maxProperties": MAX_ITEMS,
            }
        },
        responses={200: None},
        examples=[OpenApiExample("Two", {"development": 1, "production": 2}, request_only=True)],
    )
    @action(detail=False, methods=["put"], url_path="sort-order")
    def sort_order(self, request: ApiRequest) -> Response:
        """Set the sort order of the named environments."""
        orders: dict[str, Any] = MapOf(
            child=serializers.IntegerField(min_value=0, max_value=MAX_SIZE), allow_empty=False
        ).run_validation(request.data)
        actions.sort_environments(orders, caller=self.caller)
        return Response()

    @extend_schema(operation_id="updateEnvironment", request=EnvironmentChanges, responses=EnvironmentRecord)
    @action(detail=False, methods=["put"], url_path="update/<str:name>")
    def change(self, request: ApiRequest, name: str) -> Response:
        """Update an environment. Omitted properties keep their values; the name cannot be changed."""
        changes = self.validated(EnvironmentChanges)
        environment = actions.update_environment(name, changes, expected=self.expected, caller=self.caller)
        return Response(make_environment_document(environment))

    @extend_schema(operation_id="getProjectEnvironments", responses=ProjectEnvironmentList)
    @action(detail=False, url_path="project/<str:project_id>")
    def project(self, request: ApiRequest, project_id: str) -> Response:
        """List all environments with their settings in one project."""
        project = access_project(self.caller, project_id)
        return Response({"version": 1, "environments": list_project_environment_summaries(project)})

    @extend_schema(operation_id="getEnvironment", responses=EnvironmentRecord)
    def retrieve(self, request: ApiRequest, name: str) -> Response:
        """Get an environment."""
        return Response(make_environment_document(self.environment))

    @extend_schema(
        operation_id="removeEnvironment",
        responses={200: None, 409: refusal(409, "Projects or tokens use it; the message names them.")},
    )
    def destroy(self, request: ApiRequest, name: str) -> Response:
        """Delete an environment that no project or token uses."""
        actions.delete_environment(name, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def on(self, request: ApiRequest, name: str) -> Response:
        """Enable an environment: new projects use it. Existing flags do not change."""
        actions.update_environment(name, {"enabled": True}, caller=self.caller)
        return Response(status=204)

    @extend_schema(request=None, responses={204: None})
    @action(detail=True, methods=["post"])
    def off(self, request: ApiRequest, name: str) -> Response:
        """Disable an environment: new projects do not use it. Existing flags do not change."""
        actions.update_environment(name, {"enabled": False}, caller=self.caller)
        return Response(status=204)


class ProjectEnvironmentViewSet(ETagMixin, InProjectViewSet):
    conditional = frozenset({"default_strategy", "destroy"})
    tags = ("Environments",)
    lookup_url_kwarg = "name"
    permissions = {
        "create": Permission.UPDATE_PROJECT,
        "destroy": Permission.UPDATE_PROJECT,
        "default_strategy": project_actions.DEFAULT_STRATEGY_PERMISSIONS,
        "update_settings": project_actions.SETTINGS_PERMISSIONS,
    }

    @extend_schema(
        operation_id="addEnvironmentToProject", request=ProjectEnvironmentBody, responses={200: None}
    )
    def create(self, request: ApiRequest, project_id: str) -> Response:
        """Add an environment to a project."""
        body = self.validated(ProjectEnvironmentBody)
        project_actions.add_environment(
            project_id, body["environment"], default_strategy=body.get("defaultStrategy"), caller=self.caller
        )
        return Response()

    @extend_schema(
        operation_id="removeEnvironmentFromProject",
        responses={200: None, 409: refusal(409, "Flags are on there; the message names them.")},
    )
    def destroy(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Remove an environment from a project. A project always keeps at least one."""
        project_actions.remove_environment(project_id, name, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="addDefaultStrategyToProjectEnvironment",
        request=StrategyBody,
        responses={200: StrategyBody},
    )
    @action(detail=True, methods=["post"], url_path="default-strategy")
    def default_strategy(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Set the default strategy, which a flag gets when it is turned on without one."""
        strategy = self.validated(StrategyBody)
        stored = project_actions.set_default_strategy(
            project_id, name, strategy, expected=self.expected, caller=self.caller
        )
        return Response(stored, headers={"ETag": make_etag(stored)})

    @extend_schema(
        operation_id="updateProjectEnvironmentSettings",
        request=ProjectEnvironmentSettings,
        responses={200: None},
    )
    @action(detail=True, methods=["put"], url_path="settings")
    def update_settings(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Set whether changes of flags in this environment need a comment."""
        required = self.validated(ProjectEnvironmentSettings)["commentRequired"]
        project_actions.require_comment(project_id, name, required, caller=self.caller)
        return Response()
