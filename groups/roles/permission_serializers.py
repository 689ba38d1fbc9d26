"""Serializers for permissions, compatible with the reference server."""

from typing import Any

from rest_framework import serializers

from groups.models import Role
from groups.permissions import Permission


class PermissionRecord(serializers.Serializer):
    id = serializers.IntegerField(
        help_text="A number for clients that want one; a permission is named by name."
    )
    name = serializers.CharField()
    displayName = serializers.CharField()
    type = serializers.CharField(help_text="root, project or environment.")


class RolePermissionRecord(PermissionRecord):
    """A permission of a role. Without `environment`, it applies to all environments."""

    environment = serializers.CharField(required=False)


def make_permission_record(permission: Permission) -> dict[str, Any]:
    return {
        "id": permission.id,
        "name": permission.value,
        "displayName": permission.display,
        "type": permission.scope.value,
    }


def list_permission_records(role: Role) -> list[dict[str, Any]]:
    """The role's permissions, sorted by name and environment."""
    rows = role.permissions.order_by("permission", "environment_id")
    return [
        make_permission_record(Permission[row.permission])
        | ({"environment": row.environment_id} if row.environment_id else {})
        for row in rows
        if row.permission in Permission.__members__
    ]
