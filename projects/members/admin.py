"""The roles of users and groups in projects, in the admin site."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin

from flagadmin.core.errors import ValidationError
from groups.access import Caller
from groups.admin_site.base import ActionInline, ActionModelAdmin, AdminActions
from groups.models import Grant
from projects.members import actions
from projects.members.actions import Holders


class GrantActions(AdminActions):
    fields: ClassVar[Any] = ("role", "user", "group")
    raw_id_fields: ClassVar[Any] = ("user", "group")

    def check_values(self, obj: Grant, form: forms.ModelForm) -> None:
        if (obj.user_id is None) == (obj.group_id is None):
            raise ValidationError("Choose either a user or a group.")
        if obj.role.is_root:
            raise ValidationError(f"{obj.role} is a root role and cannot be granted in a project.")

    def create(self, obj: Grant, form: Any, caller: Caller) -> Grant:
        actions.add_roles(obj.project_id, [find_holder(obj)], [obj.role_id], caller=caller)
        return Grant.objects.get(
            project=obj.project_id, role=obj.role_id, user=obj.user_id, group=obj.group_id
        )

    def remove(self, obj: Grant, form: Any, caller: Caller) -> None:
        actions.remove_role(obj.project_id, find_holder(obj), obj.role_id, caller=caller)


class GrantInline(GrantActions, ActionInline):
    model = Grant
    verbose_name_plural = "roles granted here"


def find_holder(grant: Grant) -> Holders:
    if grant.user_id is not None:
        return Holders("user", (grant.user_id,))
    assert grant.group_id is not None
    return Holders("group", (grant.group_id,))


@admin.register(Grant)
class GrantAdmin(GrantActions, ActionModelAdmin):
    fields: ClassVar[Any] = ("project", "role", "user", "group")
    raw_id_fields: ClassVar[Any] = ("project", "user", "group")
    list_display = ("project", "role", "user", "group", "created_at")
    list_filter = ("role",)
    list_select_related = ("project", "role", "user", "group")
    search_fields = ("project__id", "user__username", "user__name", "group__name")
    ordering = ("project", "id")
