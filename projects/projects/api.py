"""/api/admin/projects: what flags live in."""

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import ValidationError
from flagadmin.http.fields import validated
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.access import access_project, readable_projects
from projects.deletion.api import DeletesProject
from projects.flags.queries import flag_summaries
from projects.models import Flag
from projects.projects import actions
from projects.projects.queries import project_overview, project_summaries, settings_document
from projects.projects.serializers import (
    NewProject,
    ProjectChanges,
    ProjectDetails,
    ProjectId,
    ProjectList,
    ProjectOverview,
    ProjectRecord,
    model_values,
)

TAGS = ["Projects"]


class ProjectsView(APIView):
    @extend_schema(
        operation_id="getProjects",
        tags=TAGS,
        parameters=[OpenApiParameter("archived", bool, description="true: archived projects only.")],
        responses={200: ProjectList} | refusals(400, 403),
    )
    def get(self, request: ApiRequest) -> Response:
        """The projects the caller may read, by id."""
        archived = _switch(request, "archived")
        projects = list(readable_projects(request.user).filter(archived_at__isnull=not archived))
        return Response({"version": 1, "projects": project_summaries(projects, caller=request.user)})

    @extend_schema(
        operation_id="createProject",
        tags=TAGS,
        request=NewProject,
        responses={201: ProjectRecord} | refusals(400, 403, 409, 415),
        examples=[
            OpenApiExample(
                "One", {"id": "shop", "name": "Shop", "environments": ["production"]}, request_only=True
            )
        ],
    )
    def post(self, request: ApiRequest) -> Response:
        """Create a project. Whoever does becomes its Owner."""
        request.user.check(Permission.CREATE_PROJECT)
        values = model_values(NewProject(data=request.data))
        environments = values.pop("environments", None)
        values["id"] = values.get("id") or ""
        project = actions.create_project(values, environments=environments, caller=request.user)
        used = list(project.environments.order_by("name").values_list("name", flat=True))
        return Response(settings_document(project) | {"environments": used}, status=201)


class ValidateProjectView(APIView):
    @extend_schema(
        operation_id="validateProject",
        tags=TAGS,
        request=ProjectId,
        responses={200: None} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether a project of this id could be created."""
        request.user.check(Permission.CREATE_PROJECT)
        actions.check_id_is_free(validated(ProjectId(data=request.data))["id"])
        return Response()


class ProjectView(DeletesProject):
    @extend_schema(operation_id="getProject", tags=TAGS, responses={200: ProjectDetails} | refusals(403, 404))
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """A project with its settings, environments and active flags. The overview is lighter."""
        project = access_project(request.user, project_id)
        flags = list(Flag.objects.filter(project=project, archived_at=None))
        overview = project_overview(project, caller=request.user)
        return Response(overview | {"features": flag_summaries(flags, caller=request.user)})

    @extend_schema(
        operation_id="updateProject",
        tags=TAGS,
        request=ProjectChanges,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, project_id: str) -> Response:
        """Change what is given; the id stays."""
        actions.check_may_update(request.user, project_id)
        changes = model_values(ProjectChanges(data=request.data))
        actions.update_project(project_id, changes, caller=request.user)
        return Response()


class ProjectSettingsView(APIView):
    @extend_schema(
        operation_id="updateProjectEnterpriseSettings",
        tags=TAGS,
        request=ProjectChanges,
        responses={200: None} | refusals(400, 403, 404, 415),
    )
    def put(self, request: ApiRequest, project_id: str) -> Response:
        """Change naming pattern, flag limit, default stickiness: what is given."""
        actions.check_may_update(request.user, project_id)
        changes = model_values(ProjectChanges(data=request.data))
        actions.update_project(project_id, changes, caller=request.user)
        return Response()


class ProjectOverviewView(APIView):
    @extend_schema(
        operation_id="getProjectOverview", tags=TAGS, responses={200: ProjectOverview} | refusals(403, 404)
    )
    def get(self, request: ApiRequest, project_id: str) -> Response:
        """A project with its settings, environments and counts."""
        return Response(project_overview(access_project(request.user, project_id), caller=request.user))


class ArchiveProjectView(APIView):
    @extend_schema(
        operation_id="archiveProject",
        tags=TAGS,
        request=None,
        responses={200: None}
        | refusals(404, descriptions={403: "A permission is missing, flags are active, or it is `default`."}),
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Put a project away. All its flags must be archived before."""
        actions.archive_project(project_id, caller=request.user)
        return Response()


class ReviveProjectView(APIView):
    @extend_schema(
        operation_id="reviveProject", tags=TAGS, request=None, responses={200: None} | refusals(403, 404)
    )
    def post(self, request: ApiRequest, project_id: str) -> Response:
        """Take an archived project back into use. Its flags stay archived."""
        actions.revive_project(project_id, caller=request.user)
        return Response()


def _switch(request: ApiRequest, name: str) -> bool:
    given = request.query_params.get(name, "false")
    if given not in ("true", "false"):
        raise ValidationError.at(name, f"{given} is neither true nor false")
    return given == "true"


urlpatterns = [
    path("projects", ProjectsView.as_view()),
    path("projects/validate", ValidateProjectView.as_view()),
    path("projects/archive/<str:project_id>", ArchiveProjectView.as_view()),
    path("projects/revive/<str:project_id>", ReviveProjectView.as_view()),
    path("projects/<str:project_id>", ProjectView.as_view()),
    path("projects/<str:project_id>/overview", ProjectOverviewView.as_view()),
    path("projects/<str:project_id>/settings", ProjectSettingsView.as_view()),
]
