"""/api/admin/projects: list, create, change, archive and delete projects; favorite projects and flags."""

from functools import partial
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.db.statements import Compiled
from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.openapi import refusal
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.deletion.execute import delete_project
from projects.deletion.openapi import FORBIDDEN, PROJECT_ID
from projects.flags.queries import list_flag_summaries
from projects.models import Flag, Project
from projects.project_scope import InProjectViewSet, OnFlagViewSet
from projects.projects import actions
from projects.projects.actions import set_flag_favorite, set_project_favorite
from projects.projects.queries import (
    list_project_summaries,
    make_settings_document,
    make_status_document,
    read_project_overview,
)
from projects.projects.serializers import (
    NewProject,
    ProjectChanges,
    ProjectDetails,
    ProjectId,
    ProjectList,
    ProjectOverview,
    ProjectRecord,
    ProjectStatus,
)

_LISTED = {archived: Compiled(partial(Project.objects.archived, archived)) for archived in (False, True)}


class ProjectViewSet(ETagMixin, InProjectViewSet):
    tags = ("Projects",)
    lookup_url_kwarg = "project_id"
    permissions = {
        "create": Permission.CREATE_PROJECT,
        "validate": Permission.CREATE_PROJECT,
        "archive": Permission.DELETE_PROJECT,
        "revive": actions.SETTINGS_PERMISSIONS,
        "update": actions.SETTINGS_PERMISSIONS,
        "update_settings": actions.SETTINGS_PERMISSIONS,
        "destroy": Permission.DELETE_PROJECT,
    }
    tagged = frozenset({"retrieve", "overview"})
    conditional = frozenset({"update", "update_settings", "destroy"})

    def authorize(self, project_id: str | None = None, *args: str, **kwargs: str) -> None:
        if project_id is None:
            self.check_permission()
        else:
            super().authorize(project_id)

    def get_current_document(self) -> dict[str, Any]:
        return make_settings_document(self.project)

    @extend_schema(
        operation_id="getProjects",
        parameters=[OpenApiParameter("archived", bool, description="true: archived projects only.")],
        responses=ProjectList,
    )
    def list(self, request: ApiRequest) -> Response:
        """List the projects that the caller can read, sorted by id."""
        archived = _switch(request, "archived")
        projects = [each for each in _LISTED[archived].read() if self.caller.can_read(each.pk)]
        return Response({"version": 1, "projects": list_project_summaries(projects, caller=self.caller)})

    @extend_schema(
        operation_id="createProject",
        request=NewProject,
        responses={201: ProjectRecord},
        examples=[
            OpenApiExample(
                "One", {"id": "shop", "name": "Shop", "environments": ["production"]}, request_only=True
            )
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a project. The caller becomes its Owner."""
        values = self.validated(NewProject)
        environments = values.pop("environments", None)
        values["id"] = values.get("id") or ""
        project = actions.create_project(values, environments=environments, caller=self.caller)
        used = list(project.environments.order_by("name").values_list("name", flat=True))
        return Response(make_settings_document(project) | {"environments": used}, status=201)

    @extend_schema(operation_id="validateProject", request=ProjectId, responses={200: None})
    @action(detail=False, methods=["post"])
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a project with this id can be created."""
        actions.check_id_is_free(self.validated(ProjectId)["id"])
        return Response()

    @extend_schema(
        operation_id="archiveProject",
        request=None,
        responses={
            200: None,
            403: refusal(403, "A permission is missing, flags are active, or it is `default`."),
        },
    )
    @action(detail=False, methods=["post"], url_path="archive/<str:project_id>")
    def archive(self, request: ApiRequest, project_id: str) -> Response:
        """Archive a project. All of its flags must be archived first."""
        actions.archive_project(project_id, caller=self.caller)
        return Response()

    @extend_schema(operation_id="reviveProject", request=None, responses={200: None})
    @action(detail=False, methods=["post"], url_path="revive/<str:project_id>")
    def revive(self, request: ApiRequest, project_id: str) -> Response:
        """Revive an archived project. Its flags stay archived."""
        actions.revive_project(project_id, caller=self.caller)
        return Response()

    @extend_schema(operation_id="getProject", responses=ProjectDetails)
    def retrieve(self, request: ApiRequest, project_id: str) -> Response:
        """Get a project with its settings, environments and active flags. The overview omits the flags."""
        flags = list(Flag.objects.active().filter(project=self.project))
        overview = read_project_overview(self.project, caller=self.caller)
        return Response(overview | {"features": list_flag_summaries(flags, caller=self.caller)})

    @extend_schema(operation_id="updateProject", request=ProjectChanges, responses={200: None})
    def update(self, request: ApiRequest, project_id: str) -> Response:
        """Update a project. Omitted properties keep their values; the id cannot be changed."""
        changes, expected = self.validated(ProjectChanges), self.expected
        actions.update_project(project_id, changes, expected=expected, caller=self.caller)
        return Response()

    @extend_schema(
        operation_id="updateProjectEnterpriseSettings", request=ProjectChanges, responses={200: None}
    )
    @action(detail=True, methods=["put"], url_path="settings")
    def update_settings(self, request: ApiRequest, project_id: str) -> Response:
        """Update naming pattern, flag limit and default stickiness. Omitted properties keep their values."""
        return self.update(request, project_id)

    @extend_schema(
        operation_id="deleteProject",
        summary="Delete a project",
        parameters=[PROJECT_ID],
        responses={200: OpenApiResponse(description="The project is deleted. No body."), 403: FORBIDDEN},
    )
    def destroy(self, request: ApiRequest, project_id: str) -> Response:
        """Permanently delete the project and its archived flags; this cannot be undone.

        Every flag of the project must be archived first. Deleting removes the flags with all their data, the
        project's segments, context fields and settings, all access to it, and the API tokens for it alone.
        Tokens that also name other projects keep those. Audit events stay. Needs `DELETE_PROJECT` in the
        project.
        """
        delete_project(project_id, expected=self.expected, caller=self.caller)
        return Response()

    @extend_schema(operation_id="getProjectOverview", responses=ProjectOverview)
    @action(detail=True)
    def overview(self, request: ApiRequest, project_id: str) -> Response:
        """Get a project with its settings, environments and counts."""
        return Response(read_project_overview(self.project, caller=self.caller))

    @extend_schema(operation_id="getProjectStatus", responses=ProjectStatus)
    @action(detail=True)
    def status(self, request: ApiRequest, project_id: str) -> Response:
        """Get the activity, health and resources of a project, and the lifecycle of its flags."""
        return Response(make_status_document(self.project))


class ProjectFavoriteViewSet(InProjectViewSet):
    tags = ("Favorites",)
    permissions = {"create": None, "clear": None}

    @extend_schema(operation_id="addFavoriteProject", request=None, responses={200: None})
    def create(self, request: ApiRequest, project_id: str) -> Response:
        """Mark a project as a favorite of the caller."""
        set_project_favorite(project_id, True, caller=self.caller)
        return Response()

    @extend_schema(operation_id="removeFavoriteProject", responses={200: None})
    def clear(self, request: ApiRequest, project_id: str) -> Response:
        """Remove a project from the caller's favorites."""
        set_project_favorite(project_id, False, caller=self.caller)
        return Response()


class FlagFavoriteViewSet(OnFlagViewSet):
    tags = ("Favorites",)
    permissions = {"create": None, "clear": None}

    @extend_schema(operation_id="addFavoriteFeature", request=None, responses={200: None})
    def create(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Mark a flag as a favorite of the caller."""
        set_flag_favorite(project_id, name, True, caller=self.caller)
        return Response()

    @extend_schema(operation_id="removeFavoriteFeature", responses={200: None})
    def clear(self, request: ApiRequest, project_id: str, name: str) -> Response:
        """Remove a flag from the caller's favorites."""
        set_flag_favorite(project_id, name, False, caller=self.caller)
        return Response()


def _switch(request: ApiRequest, name: str) -> bool:
    value = request.query_params.get(name, "false")
    if value not in ("true", "false"):
        raise ValidationError.at(name, f"{value} is neither true nor false")
    return value == "true"
