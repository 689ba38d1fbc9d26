"""Environments in the admin site."""

from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.admin_site.base import Subject, SubjectAdmin
from projects.environments import actions
from projects.models import Environment


@admin.register(Environment)
class EnvironmentAdmin(SubjectAdmin):
    list_display = ("name", "type", "enabled", "sort_order")
    list_filter = ("type", "enabled")
    search_fields = ("name", "type")
    readonly_on_change = ("name",)
    readonly_always = ("created_at",)
    fields = ("name", "type", "enabled", "sort_order", "created_at")
    extra_help_texts = {"enabled": "Add to new projects."}
    event_types = (EventType.ENVIRONMENT_UPDATED,)
    subject = Subject(
        create=actions.create_environment,
        update=actions.update_environment,
        delete=actions.delete_environment,
        lock=actions.access_environment_for_update,
        check=actions.check_environment_values,
        deletion_checks=(actions.check_environment_is_unused,),
    )
