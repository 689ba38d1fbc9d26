"""Admin site page for environments. All changes go through the same actions as the API."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin
from projects.environments import actions as environment_actions
from projects.models import Environment


@admin.register(Environment)
class EnvironmentAdmin(ActionModelAdmin):
    list_display = ("name", "type", "enabled", "sort_order")
    list_filter = ("type", "enabled")
    search_fields = ("name", "type")
    readonly_on_change = ("name",)
    extra_help_texts = {
        "name": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "type": "For example development, test, preproduction, production.",
        "enabled": "Whether new projects use it. Existing flags do not change.",
    }
    readonly_always = ("created_at",)
    fields = ("name", "type", "enabled", "sort_order", "created_at")

    event_types = (EventType.ENVIRONMENT_UPDATED,)

    def lock(self, obj: Environment, caller: Caller) -> object:
        return environment_actions.access_environment_for_update(caller, obj.pk)

    def check_values(self, obj: Environment, form: forms.ModelForm) -> None:
        environment_actions.check_environment_values(obj)

    def create(self, obj: Environment, form: Any, caller: Caller) -> Environment:
        return environment_actions.create_environment(form.cleaned_data, caller=caller)

    def change(self, obj: Environment, form: Any, caller: Caller) -> None:
        environment_actions.update_environment(obj.pk, form.cleaned_data, caller=caller)

    def remove(self, obj: Environment, form: Any, caller: Caller) -> None:
        environment_actions.delete_environment(obj.pk, caller=caller)

    def deletion_checks(self, obj: Environment, caller: Caller) -> Any:
        yield partial(environment_actions.check_environment_is_unused, obj)
