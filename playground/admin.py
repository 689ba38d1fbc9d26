"""The admin site's pages of saved contexts and, read-only, of evaluated files of users."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin, ReadOnlyModelAdmin, checked_body
from playground.models import SavedContext, UserRun
from playground.saved_contexts import actions
from playground.saved_contexts.serializers import ExpectationBody
from projects.admin_forms import values


@admin.register(SavedContext)
class SavedContextAdmin(ActionModelAdmin):
    list_display = ("name", "project", "note", "updated_by", "updated_at")
    list_filter = ("project",)
    search_fields = ("name", "note")
    raw_id_fields = ("project",)
    readonly_on_change = ("project",)
    readonly_always = ("enforced_in", "created_by", "created_at", "updated_by", "updated_at")
    fields = ("name", "project", "note", "context", "expectations", *readonly_always)
    extra_help_texts = {
        "context": "As the playground takes it. Fields of your own go into properties.",
        "expectations": 'A list. Each: {"flag": …, "environment": …, "enabled": …}; optional "variant" and "payload".',
        "project": "The project that it belongs to; empty: none, it is offered everywhere.",
    }

    event_types = (EventType.SAVED_CONTEXT_UPDATED,)

    def lock(self, obj: SavedContext, caller: Caller) -> object:
        return actions.access_saved_context_for_update(caller, obj.pk)

    def check_values(self, obj: SavedContext, form: forms.ModelForm) -> None:
        obj.expectations = checked_body(ExpectationBody, obj.expectations, "expectations", many=True)
        stored = SavedContext.objects.filter(pk=obj.pk).values_list("expectations", flat=True).first()
        actions.check_saved_context(obj, Caller.system(), stored=stored or ())

    def create(self, obj: SavedContext, form: Any, caller: Caller) -> SavedContext:
        return actions.create_saved_context(self.values(obj, form), caller=caller)

    def change(self, obj: SavedContext, form: Any, caller: Caller) -> None:
        actions.update_saved_context(obj.pk, self.values(obj, form), caller=caller)

    def remove(self, obj: SavedContext, form: Any, caller: Caller) -> None:
        actions.delete_saved_context(obj.pk, caller=caller)

    def values(self, obj: SavedContext, form: Any) -> dict[str, Any]:
        return values(form) | {"context": obj.context, "expectations": obj.expectations}


@admin.register(UserRun)
class UserRunAdmin(ReadOnlyModelAdmin):
    list_display = ("created_at", "caller_name", "state", "environment", "flag", "rows_done", "rows")
    list_filter = ("state", "environment")
    search_fields = ("caller_name", "file_name")
    exclude = ("body",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(name for name in super().get_readonly_fields(request, obj) if name != "body")

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserRun]:
        return super().get_queryset(request).defer("body", "counts")
