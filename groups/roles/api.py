"""/api/admin/roles: named sets of permissions."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from flagadmin.http.fields import Body
from flagadmin.http.openapi import refusals
from flagadmin.http.path_ids import path_id
from groups.authentication import ApiRequest
from groups.models import Role
from groups.people.serializers import RoleRecord, role_record
from groups.permissions import Permission
from groups.roles import actions
from groups.roles.actions import Held
from groups.roles.permission_serializers import HeldRecord, held_records

TAGS = ["Roles"]
EXAMPLE = OpenApiExample(
    "May switch flags in development",
    {
        "name": "Switcher",
        "description": "Switches flags in development",
        "type": "custom",
        "permissions": [{"name": "UPDATE_FEATURE_ENVIRONMENT", "environment": "development"}],
    },
    request_only=True,
)


class PermissionBody(Body):
    name = serializers.CharField(max_length=64)
    environment = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        allow_blank=True,
        help_text="null: in every environment.",
    )


class RoleUpdateBody(Body):
    name = serializers.CharField(max_length=255, required=False)
    description = serializers.CharField(max_length=10_000, required=False, allow_blank=True, allow_null=True)
    type = serializers.CharField(
        required=False, help_text="custom (in projects) or root-custom; it never changes."
    )
    permissions = PermissionBody(many=True, required=False)

    def changes(self) -> dict[str, Any]:
        data = self.validated_data
        changes = {key: data[key] or "" for key in ("name", "description") if key in data}
        if "permissions" in data:
            changes["permissions"] = [
                Held(held["name"], held.get("environment") or None) for held in data["permissions"]
            ]
        return changes


class RoleBody(RoleUpdateBody):
    name = serializers.CharField(max_length=255)


class RoleWithPermissionsRecord(RoleRecord):
    """A role and what it permits."""

    permissions = HeldRecord(many=True)


class ChangedRole(serializers.Serializer):
    version = serializers.IntegerField()
    roles = RoleWithPermissionsRecord(help_text="The one role.")


class RoleList(serializers.Serializer):
    version = serializers.IntegerField()
    roles = RoleRecord(many=True)


def full_record(role: Role) -> dict[str, Any]:
    return role_record(role) | {"permissions": held_records(role)}


def _changed(role: Role) -> Response:
    return Response({"version": 1, "roles": full_record(role)})


class RolesView(APIView):
    @extend_schema(operation_id="getRoles", tags=TAGS, responses={200: RoleList} | refusals(403))
    def get(self, request: ApiRequest) -> Response:
        """All roles, built-in ones first."""
        request.user.check_any(actions.READERS)
        return Response({"version": 1, "roles": [role_record(role) for role in Role.objects.order_by("id")]})

    @extend_schema(
        operation_id="createRole",
        tags=TAGS,
        request=RoleBody,
        responses={200: ChangedRole} | refusals(400, 403, 409, 415),
        examples=[EXAMPLE],
    )
    def post(self, request: ApiRequest) -> Response:
        """Add a role."""
        request.user.check(Permission.ADMIN)
        body = RoleBody(data=request.data)
        body.is_valid(raise_exception=True)
        changes = body.changes()
        role = actions.create_role(
            changes["name"],
            description=changes.get("description", ""),
            type=body.validated_data.get("type", Role.Type.CUSTOM.value),
            permissions=changes.get("permissions", []),
            caller=request.user,
        )
        return _changed(role)


class ValidateRoleView(APIView):
    @extend_schema(
        operation_id="validateRole",
        tags=TAGS,
        request=RoleBody,
        responses={200: RoleBody} | refusals(400, 403, 409, 415),
    )
    def post(self, request: ApiRequest) -> Response:
        """Whether a role of this name could be added. Writes nothing."""
        request.user.check(Permission.ADMIN)
        body = RoleBody(data=request.data)
        body.is_valid(raise_exception=True)
        actions.check_role_name(body.validated_data["name"])
        return Response(body.data)


class RoleView(APIView):
    @extend_schema(
        operation_id="getRoleById",
        tags=TAGS,
        responses={200: RoleWithPermissionsRecord} | refusals(400, 403, 404),
    )
    def get(self, request: ApiRequest, role_id: str) -> Response:
        """One role and what it permits."""
        request.user.check_any(actions.READERS)
        return Response(full_record(actions.access_role(request.user, path_id(role_id))))

    @extend_schema(
        operation_id="updateRole",
        tags=TAGS,
        request=RoleUpdateBody,
        responses={200: ChangedRole} | refusals(400, 403, 404, 409, 415),
        examples=[EXAMPLE],
    )
    def put(self, request: ApiRequest, role_id: str) -> Response:
        """Change a role; what is not named stays. Built-in ones are fixed."""
        request.user.check(Permission.ADMIN)
        body = RoleUpdateBody(data=request.data)
        body.is_valid(raise_exception=True)
        role = actions.update_role(path_id(role_id), body.changes(), caller=request.user)
        return _changed(role)

    @extend_schema(operation_id="deleteRole", tags=TAGS, responses={200: None} | refusals(400, 403, 404))
    def delete(self, request: ApiRequest, role_id: str) -> Response:
        """Delete a role that nobody holds (400 RoleInUseError otherwise). Built-in ones are fixed."""
        request.user.check(Permission.ADMIN)
        actions.delete_role(path_id(role_id), caller=request.user)
        return Response()


urlpatterns = [
    path("roles", RolesView.as_view()),
    path("roles/validate", ValidateRoleView.as_view()),
    path("roles/<str:role_id>", RoleView.as_view()),
]
