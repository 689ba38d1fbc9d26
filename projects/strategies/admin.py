"""Strategy types in the admin site."""

from functools import partial

from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.admin_site.base import Subject, SubjectAdmin
from groups.permissions import Permission
from projects.models import StrategyType
from projects.strategies import strategy_types as actions


@admin.register(StrategyType)
class StrategyTypeAdmin(SubjectAdmin):
    list_display = ("name", "title", "built_in", "deprecated", "description")
    list_filter = ("built_in", "deprecated")
    search_fields = ("name", "title", "description")
    readonly_on_change = ("name",)
    readonly_always = ("built_in",)
    fields = ("name", "title", "description", "parameters", "deprecated", "sort_order", "built_in")
    extra_help_texts = {
        "parameters": '[{"name": …, "type": string, percentage, list, number or boolean, "required": …}]',
    }
    event_types = (EventType.STRATEGY_UPDATED, EventType.STRATEGY_DEPRECATED, EventType.STRATEGY_REACTIVATED)
    subject = Subject(
        create=actions.create_strategy_type,
        update=actions.update_strategy_type,
        delete=actions.delete_strategy_type,
        lock=partial(actions.access_strategy_type_for_update, permission=Permission.UPDATE_STRATEGY),
        check=actions.check_strategy_type,
        deletion_checks=(actions.check_not_built_in, actions.check_strategy_type_is_unused),
    )
