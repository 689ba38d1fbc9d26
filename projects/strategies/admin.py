"""Strategy types in the admin site."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin
from groups.permissions import Permission
from projects.admin_forms import values
from projects.models import StrategyType
from projects.strategies import strategy_types


@admin.register(StrategyType)
class StrategyTypeAdmin(ActionModelAdmin):
    list_display = ("name", "title", "built_in", "deprecated", "description")
    list_filter = ("built_in", "deprecated")
    search_fields = ("name", "title", "description")
    readonly_on_change = ("name",)
    readonly_always = ("built_in",)
    extra_help_texts = {
        "name": "1 to 100 of letters, digits and - . _ ~. It never changes.",
        "parameters": '[{"name": …, "type": string, percentage, list, number or boolean, "required": …}]',
        "deprecated": "No longer offered for new strategies; existing ones keep working.",
    }
    fields = ("name", "title", "description", "parameters", "deprecated", "sort_order", "built_in")

    event_types = (EventType.STRATEGY_UPDATED, EventType.STRATEGY_DEPRECATED, EventType.STRATEGY_REACTIVATED)

    def lock(self, obj: StrategyType, caller: Caller) -> object:
        permission = Permission.UPDATE_STRATEGY
        return strategy_types.access_strategy_type_for_update(caller, obj.pk, permission)

    def check_values(self, obj: StrategyType, form: forms.ModelForm) -> None:
        strategy_types.check_strategy_type(obj)

    def create(self, obj: StrategyType, form: Any, caller: Caller) -> StrategyType:
        return strategy_types.create_strategy_type(values(form, blank=True), caller=caller)

    def change(self, obj: StrategyType, form: Any, caller: Caller) -> None:
        strategy_types.update_strategy_type(obj.pk, values(form, blank=True), caller=caller)

    def remove(self, obj: StrategyType, form: Any, caller: Caller) -> None:
        strategy_types.delete_strategy_type(obj.pk, caller=caller)

    def deletion_checks(self, obj: StrategyType, caller: Caller) -> Any:
        yield partial(strategy_types.check_not_built_in, obj)
        yield partial(strategy_types.check_strategy_type_is_unused, obj)
