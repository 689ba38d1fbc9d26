"""Context fields in the admin site."""

from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin
from groups.permissions import Permission
from projects.admin_forms import values
from projects.context_fields import actions as context_fields
from projects.models import ContextField


@admin.register(ContextField)
class ContextFieldAdmin(ActionModelAdmin):
    list_display = ("name", "description", "stickiness", "sort_order", "project")
    list_filter = ("stickiness", "project")
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_on_change = ("name", "project")
    extra_help_texts = {
        "name": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "stickiness": "Whether rollouts and variants can use it as their stickiness.",
        "legal_values": 'The only values that constraints may use: [{"value": …, "description": …}]. Empty: any.',
        "project": "The project that it belongs to; empty: all.",
    }
    readonly_always = ("created_at",)
    fields = ("name", "description", "stickiness", "sort_order", "legal_values", "project", "created_at")

    event_types = (EventType.CONTEXT_FIELD_UPDATED,)

    def lock(self, obj: ContextField, caller: Caller) -> object:
        permission = Permission.UPDATE_CONTEXT_FIELD
        return context_fields.access_context_field_for_update(caller, obj.pk, permission)

    def check_values(self, obj: ContextField, form: forms.ModelForm) -> None:
        context_fields.check_context_field(obj)

    def create(self, obj: ContextField, form: Any, caller: Caller) -> ContextField:
        return context_fields.create_context_field(values(form), caller=caller)

    def change(self, obj: ContextField, form: Any, caller: Caller) -> None:
        context_fields.update_context_field(obj.pk, values(form), caller=caller)

    def remove(self, obj: ContextField, form: Any, caller: Caller) -> None:
        context_fields.delete_context_field(obj.pk, caller=caller)
