"""/api/admin/roles: named sets of permissions. /api/admin/permissions: the available permissions."""

from collections import defaultdict
from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from flagadmin.core.edit_conflicts.etags import ETagMixin
from flagadmin.core.http.fields import Body, path_id
from groups.models import Role
from groups.models.roles import HeldPermission, RoleDocument
from groups.people.serializers import RoleRecord
from groups.permissions import ROLE_READERS, Permission, Scope
from groups.roles import actions
from groups.roles.actions import RoleChanges, access_role, check_role_name, read_environment_names
from groups.viewsets import ApiRequest, ViewSet


class PermissionRecord(serializers.Serializer):
    id = serializers.IntegerField(
        help_text="A number for clients that want one; a permission is named by name."
    )
    name = serializers.CharField()
    displayName = serializers.CharField(source="display")
    type = serializers.CharField(source="scope", help_text="root, project or environment.")


class RolePermissionRecord(PermissionRecord):
    """A permission of a role. Without `environment`, it applies to all environments."""

    environment = serializers.CharField(required=False)


def list_permission_records(role: Role) -> list[dict[str, Any]]:
    """The role's permissions, sorted by name and environment."""
    rows = role.permissions.order_by("permission", "environment_id")
    return [
        PermissionRecord(Permission[row.permission]).data
        | ({"environment": row.environment_id} if row.environment_id else {})
        for row in rows
        if row.permission in Permission.__members__
    ]


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


class RoleBody(RoleUpdateBody):
    name = serializers.CharField(max_length=255)


class RoleWithPermissionsRecord(RoleRecord):
    """A role with its permissions."""

    permissions = RolePermissionRecord(many=True)


class ChangedRole(serializers.Serializer):
    version = serializers.IntegerField()
    roles = RoleWithPermissionsRecord(help_text="The one role.")


class RoleList(serializers.Serializer):
    version = serializers.IntegerField()
    roles = RoleRecord(many=True)


class EnvironmentPermissions(serializers.Serializer):
    name = serializers.CharField()
    permissions = PermissionRecord(many=True)


class PermissionsByScope(serializers.Serializer):
    root = PermissionRecord(many=True)
    project = PermissionRecord(many=True)
    environments = EnvironmentPermissions(many=True)


class AllPermissions(serializers.Serializer):
    permissions = PermissionsByScope()
    version = serializers.IntegerField()


def convert_changes(data: dict[str, Any]) -> RoleChanges:
    changes: RoleChanges = {}
    if "name" in data:
        changes["name"] = data["name"]
    if "description" in data:
        changes["description"] = data["description"] or ""
    if "permissions" in data:
        changes["permissions"] = [
            HeldPermission(held["name"], held.get("environment") or None) for held in data["permissions"]
        ]
    return changes


def make_full_record(role: Role) -> dict[str, Any]:
    return RoleRecord(role).data | {"permissions": list_permission_records(role)}


def _answer_changed(role: Role) -> Response:
    return Response({"version": 1, "roles": make_full_record(role)})


class RoleViewSet(ETagMixin, ViewSet):
    tags = ("Roles",)
    lookup_url_kwarg = "role_id"
    permissions = {
        "list": ROLE_READERS,
        "create": Permission.ADMIN,
        "validate": Permission.ADMIN,
        "retrieve": ROLE_READERS,
        "update": Permission.ADMIN,
        "destroy": Permission.ADMIN,
    }

    @cached_property
    def role(self) -> Role:
        return access_role(self.caller, path_id(self.kwargs["role_id"], "Role"))

    def get_current_document(self) -> RoleDocument:
        return self.role.document()

    @extend_schema(operation_id="getRoles", responses=RoleList)
    def list(self, request: ApiRequest) -> Response:
        """List all roles, built-in ones first."""
        return Response({"version": 1, "roles": RoleRecord(Role.objects.order_by("id"), many=True).data})

    @extend_schema(
        operation_id="createRole", request=RoleBody, responses={200: ChangedRole}, examples=[EXAMPLE]
    )
    def create(self, request: ApiRequest) -> Response:
        """Create a role."""
        data = self.validated(RoleBody)
        changes = convert_changes(data)
        role = actions.create_role(
            changes["name"],
            description=changes.get("description", ""),
            type=data.get("type", Role.Type.CUSTOM.value),
            permissions=changes.get("permissions", []),
            caller=self.caller,
        )
        return _answer_changed(role)

    @extend_schema(operation_id="validateRole", request=RoleBody, responses=RoleBody)
    @action(methods=["post"], detail=False)
    def validate(self, request: ApiRequest) -> Response:
        """Check whether a role with this name can be created. Stores nothing."""
        data = self.validated(RoleBody)
        check_role_name(data["name"])
        return Response(RoleBody(data).data)

    @extend_schema(operation_id="getRoleById", responses=RoleWithPermissionsRecord)
    def retrieve(self, request: ApiRequest, role_id: str) -> Response:
        """Get a role with its permissions."""
        return Response(make_full_record(self.role))

    @extend_schema(
        operation_id="updateRole", request=RoleUpdateBody, responses=ChangedRole, examples=[EXAMPLE]
    )
    def update(self, request: ApiRequest, role_id: str) -> Response:
        """Update a role. Omitted properties keep their values; built-in roles cannot be changed."""
        changes = convert_changes(self.validated(RoleUpdateBody))
        role = actions.update_role(
            path_id(role_id, "Role"), changes, expected=self.expected, caller=self.caller
        )
        return _answer_changed(role)

    @extend_schema(operation_id="deleteRole", responses={200: None})
    def destroy(self, request: ApiRequest, role_id: str) -> Response:
        """Delete a role.

        A role that is in use is refused with 400 (RoleInUseError); built-in roles cannot be deleted.
        """
        actions.delete_role(path_id(role_id, "Role"), expected=self.expected, caller=self.caller)
        return Response()


class PermissionViewSet(ViewSet):
    tags = ("Users",)

    @extend_schema(operation_id="getPermissions", responses=AllPermissions)
    def list(self, request: ApiRequest) -> Response:
        """List every permission by the scope it is held in."""
        by_scope = defaultdict(list)
        for permission in Permission:
            by_scope[permission.scope].append(PermissionRecord(permission).data)
        environments = [
            {"name": name, "permissions": by_scope[Scope.ENVIRONMENT]} for name in read_environment_names()
        ]
        scopes = {
            "root": by_scope[Scope.ROOT],
            "project": by_scope[Scope.PROJECT],
            "environments": environments,
        }
        return Response({"permissions": scopes, "version": 1})
