"""GET /api/admin/projects/roles/:roleId/access."""

import re

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.errors import ValidationError
from flagadmin.http.openapi import refusals
from groups.authentication import ApiRequest
from groups.permissions import Permission
from projects.members.role_usage import role_usage

_NUMBER = re.compile(r"-?[0-9]+")
_LARGEST = 2**63 - 1
EXAMPLE = {
    "projects": [{"project": "shop", "role": 5, "userCount": 3, "serviceAccountCount": 1, "groupCount": 2}]
}


class ProjectRoleUsage(serializers.Serializer):
    """How often a role is given in one project, counting direct grants."""

    project = serializers.CharField(help_text="Project identifier.")
    role = serializers.IntegerField(help_text="Role identifier.")
    userCount = serializers.IntegerField(min_value=0, help_text="Users holding the role in the project.")
    serviceAccountCount = serializers.IntegerField(
        min_value=0, help_text="Service accounts holding the role in the project."
    )
    groupCount = serializers.IntegerField(
        min_value=0, help_text="Groups holding the role in the project; each counts once."
    )


class RoleProjectAccess(serializers.Serializer):
    projects = ProjectRoleUsage(many=True, help_text="By project id; empty for a role held nowhere.")


class RoleUsageView(APIView):
    @extend_schema(
        operation_id="getRoleProjectAccess",
        tags=["Projects"],
        summary="Projects that use a role",
        parameters=[
            OpenApiParameter(
                "role_id",
                str,
                OpenApiParameter.PATH,
                description="The role's id, a whole number.",
                examples=[OpenApiExample("Member", "5")],
            )
        ],
        responses={200: RoleProjectAccess} | refusals(400, 403),
        examples=[OpenApiExample("Member in one project", EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: ApiRequest, role_id: str) -> Response:
        """The projects that use the role, with how many users, service accounts and groups hold it there.

        What a root role gives everywhere belongs to no project and is not listed. An unknown role is held nowhere.
        Needs `ADMIN` or `READ_ROLE`.
        """
        request.user.check_any([Permission.ADMIN, Permission.READ_ROLE])
        if not _NUMBER.fullmatch(role_id):
            raise ValidationError.at("roleId", f"{role_id[:100]} is not an id; give a whole number.")
        known = len(role_id) <= 20 and 0 < int(role_id) <= _LARGEST
        return Response({"projects": role_usage(int(role_id)) if known else []})


urlpatterns = [path("projects/roles/<str:role_id>/access", RoleUsageView.as_view())]
