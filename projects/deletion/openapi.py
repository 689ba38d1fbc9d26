"""OpenAPI parameters and error examples for DELETE /api/admin/projects/:projectId."""

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from flagadmin.core.http.openapi import ErrorRecord

PROJECT_ID = OpenApiParameter(
    "project_id",
    str,
    OpenApiParameter.PATH,
    description="The project's id.",
    examples=[OpenApiExample("A project", "legacy-portal")],
)
_ID = "9c40958a-daac-400e-98fb-3bb438567008"
FORBIDDEN = OpenApiResponse(
    ErrorRecord,
    description="The permission is missing (NoAccessError), or a rule forbids it (InvalidOperationError): "
    "a flag is not archived, it is the default project, or a flag elsewhere depends on one of its flags.",
    examples=[
        OpenApiExample(
            "The permission is missing",
            {
                "id": _ID,
                "name": "NoAccessError",
                "message": 'You need the "Archive and delete the project" permission in Legacy portal.',
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
