"""Creates the built-in roles after every migrate, because flushing the database deletes them."""

from typing import Any

from django.apps import apps as global_apps
from django.db import connections, transaction

from groups.permissions import BUILT_IN_ROLES


def seed_roles(using: str, apps: Any = global_apps, **kwargs: Any) -> None:
    """Adds missing built-in roles and permissions. The ids of custom roles start at 100."""
    try:
        role, role_permission = apps.get_model("groups", "Role"), apps.get_model("groups", "RolePermission")
    except LookupError:  # migrated back to a version without roles
        return
    with transaction.atomic(using=using):
        for built_in in BUILT_IN_ROLES:
            defaults = {"name": built_in.name, "description": built_in.description, "type": built_in.type}
            role.objects.using(using).update_or_create(id=built_in.id.value, defaults=defaults)
        role_permission.objects.using(using).bulk_create(
            [
                role_permission(role_id=built_in.id.value, permission=permission.value)
                for built_in in BUILT_IN_ROLES
                for permission in sorted(built_in.permissions)
            ],
            ignore_conflicts=True,
        )
        with connections[using].cursor() as cursor:
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence('groups_role', 'id'), greatest(max(id), 99)) FROM groups_role"
            )
