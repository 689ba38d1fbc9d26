"""The admin site's page for roles."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionInline, ActionModelAdmin, is_admin
from groups.authentication import caller_of
from groups.models import (
    Role,
    RolePermission,
)
from groups.roles import actions as roles
from groups.roles.actions import Held


class RolePermissionInline(ActionInline):
    model = RolePermission
    fields = ("permission", "environment")
    verbose_name_plural = "permissions"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request) and not is_built_in(obj)

    has_change_permission = has_delete_permission = has_add_permission


def held(row: RolePermission) -> Held:
    return Held(row.permission, row.environment_id)


def is_built_in(obj: Any) -> bool:
    return isinstance(obj, Role) and obj.is_built_in


@admin.register(Role)
class RoleAdmin(ActionModelAdmin):
    list_display = ("name", "id", "type", "description")
    list_filter = ("type",)
    search_fields = ("name", "description")
    readonly_on_change = ("type",)
    readonly_always = ("created_at",)
    fields = ("name", "type", "description", "created_at")
    inlines = (RolePermissionInline,)
    event_types = (EventType.ROLE_UPDATED,)

    def lock(self, obj: Role, caller: Caller) -> object:
        return roles.access_role_for_update(caller, obj.pk)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is not None else ()

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not is_built_in(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not is_built_in(obj)

    def create(self, obj: Role, form: Any, caller: Caller) -> Role:
        return roles.create_role(
            obj.name, description=obj.description, type=obj.type, permissions=[], caller=caller
        )

    def change(self, obj: Role, form: Any, caller: Caller) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data}
        if changes:
            roles.update_role(obj.pk, changes, caller=caller)

    def remove(self, obj: Role, form: Any, caller: Caller) -> None:
        roles.delete_role(obj.pk, caller=caller)

    def deletion_checks(self, obj: Role, caller: Caller) -> Any:
        yield partial(roles.check_role_is_unused, obj)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Replaces all permissions of the role through one action."""
        if not formset.has_changed():
            return
        kept = [row for row in formset.forms if row.cleaned_data and not row.cleaned_data.get("DELETE")]
        permissions = list(dict.fromkeys(held(row.instance) for row in kept))
        roles.update_role(form.instance.pk, {"permissions": permissions}, caller=caller_of(request))
