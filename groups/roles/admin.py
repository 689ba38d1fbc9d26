"""Roles in the admin site."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionInline, Subject, SubjectAdmin, is_admin
from groups.authentication import get_caller
from groups.models import Role, RolePermission
from groups.roles import actions
from groups.roles.rules import check_role_is_unused


class OnlyRootRoles:
    """A base for pages of accounts and groups, whose field `root_role` offers only root roles."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "root_role":
            kwargs["queryset"] = Role.objects.root()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]

    def values(self, obj: Any, names: Any) -> dict[str, Any]:
        values = super().values(obj, names)  # type: ignore[misc]
        return {"root_role" if name == "root_role_id" else name: value for name, value in values.items()}


class RolePermissionInline(ActionInline):
    """The permissions of a role, which its page replaces as a whole."""

    model = RolePermission
    fields = ("permission", "environment")
    verbose_name_plural = "permissions"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request) and not is_built_in(obj)

    has_change_permission = has_delete_permission = has_add_permission


def is_built_in(obj: Any) -> bool:
    return isinstance(obj, Role) and obj.is_built_in


@admin.register(Role)
class RoleAdmin(SubjectAdmin):
    list_display = ("name", "id", "type", "description")
    list_filter = ("type",)
    search_fields = ("name", "description")
    readonly_on_change = ("type",)
    readonly_always = ("created_at",)
    fields = ("name", "type", "description", "created_at")
    inlines = (RolePermissionInline,)
    event_types = (EventType.ROLE_UPDATED,)
    subject = Subject(
        update=actions.update_role,
        delete=actions.delete_role,
        lock=actions.access_role_for_update,
        deletion_checks=(check_role_is_unused,),
    )

    def may_change(self, obj: Any) -> bool:
        return not is_built_in(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not is_built_in(obj)

    def create(self, obj: Role, form: Any, caller: Caller) -> Role:
        return actions.create_role(**self.values(obj, form.cleaned_data), permissions=[], caller=caller)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Replaces all permissions of the role through one action."""
        if not formset.has_changed():
            return
        rows = [row for row in formset.forms if row.cleaned_data and not row.cleaned_data.get("DELETE")]
        permissions = list(dict.fromkeys(row.instance.held for row in rows))
        actions.update_role(form.instance.pk, {"permissions": permissions}, caller=get_caller(request))
