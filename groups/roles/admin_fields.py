"""A mixin for admin pages: the field ``root_role`` only offers root roles."""

from typing import Any

from django.http import HttpRequest

from groups.models import (
    Role,
)

ROOT_TYPES = (Role.Type.ROOT, Role.Type.ROOT_CUSTOM)


class OnlyRootRoles:
    """Limits the choices of the field ``root_role`` to root roles."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "root_role":
            kwargs["queryset"] = Role.objects.filter(type__in=ROOT_TYPES)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]
