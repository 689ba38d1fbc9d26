"""DELETE /api/admin/projects/:projectId."""

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.openapi import ErrorRecord, refusals
from groups.authentication import ApiRequest
from projects.deletion.execute import delete_project

_ID = "9c40958a-daac-400e-98fb-3bb438567008"
FORBIDDEN = OpenApiResponse(
    ErrorRecord,
    description="The permission is missing (NoAccessError), or a rule stands against it (InvalidOperationError): "
    "a flag is not archived, it is the default project, or a flag elsewhere depends on what would go.",
    examples=[
        OpenApiExample(
            "The permission is missing",
            {
                "id": _ID,
                "name": "NoAccessError",
                "message": 'You need "delete project" in legacy-portal.',
                "permissions": ["DELETE_PROJECT"],
            },
            response_only=True,
        ),
        OpenApiExample(
            "Flags are still active",
            {
                "id": _ID,
                "name": "InvalidOperationError",
                "message": "2 flags are still active in project legacy-portal: portal-menu, portal-read-only. "
                "Archive them first; the project can be deleted after that.",
                "details": [
                    {"path": "portal-menu", "message": "is still active"},
                    {"path": "portal-read-only", "message": "is still active"},
                ],
            },
            response_only=True,
        ),
        OpenApiExample(
            "The default project",
            {"id": _ID, "name": "InvalidOperationError", "message": "The default project cannot be deleted."},
            response_only=True,
        ),
    ],
)


class DeletesProject(APIView):
    @extend_schema(
        operation_id="deleteProject",
        tags=["Projects"],
        summary="Delete a project",
        parameters=[
            OpenApiParameter(
                "project_id",
                str,
                OpenApiParameter.PATH,
                description="The project's id.",
                examples=[OpenApiExample("A project", "legacy-portal")],
            )
        ],
        responses={200: OpenApiResponse(description="It is deleted. No body.")}
        | refusals(400, 404)
        | {403: FORBIDDEN},
    )
    def delete(self, request: ApiRequest, project_id: str) -> Response:
        """Permanently deletes the project and its archived flags; this cannot be undone.

        Every flag of the project must be archived before. With the project go its flags and all that is on them,
        its segments and context fields, settings, everyone's access to it, and the API tokens that are for it alone;
        tokens that name other projects too keep those. Audit events stay. Needs `DELETE_PROJECT` in the project.
        """
        delete_project(project_id, caller=request.user)
        return Response()
