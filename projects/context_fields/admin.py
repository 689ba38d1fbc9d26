"""Context fields in the admin site."""

from functools import partial

from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.admin_site.base import Subject, SubjectAdmin
from groups.permissions import Permission
from projects.context_fields import actions
from projects.models import ContextField


@admin.register(ContextField)
class ContextFieldAdmin(SubjectAdmin):
    list_display = ("name", "description", "stickiness", "sort_order", "project")
    list_filter = ("stickiness", "project")
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_on_change = ("name", "project")
    readonly_always = ("created_at",)
    fields = ("name", "description", "stickiness", "sort_order", "legal_values", "project", "created_at")
    extra_help_texts = {"legal_values": '[{"value": …, "description": …}]; empty: any.'}
    event_types = (EventType.CONTEXT_FIELD_UPDATED,)
    subject = Subject(
        create=actions.create_context_field,
        update=actions.update_context_field,
        delete=actions.delete_context_field,
        lock=partial(actions.access_context_field_for_update, permission=Permission.UPDATE_CONTEXT_FIELD),
        check=actions.check_context_field,
    )
