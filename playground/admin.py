"""Saved contexts and, read-only, evaluated files of users and analyses in the admin site."""

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ReadOnlyModelAdmin, Subject, SubjectAdmin
from playground.models import Analysis, SavedContext, UserRun
from playground.saved_contexts import actions
from playground.saved_contexts.serializers import ExpectationBody


@admin.register(SavedContext)
class SavedContextAdmin(SubjectAdmin):
    list_display = ("name", "project", "note", "updated_by", "updated_at")
    list_filter = ("project",)
    search_fields = ("name", "note")
    raw_id_fields = ("project",)
    readonly_on_change = ("project",)
    readonly_always = ("enforced_in", "created_by", "created_at", "updated_by", "updated_at")
    fields = ("name", "project", "note", "context", "expectations", *readonly_always)
    extra_help_texts = {
        "context": "Same format as the playground; custom fields go in properties.",
        "expectations": 'A list. Each: {"flag": …, "environment": …, "enabled": …}; optional "variant" and "payload".',
    }
    json_lists = {"expectations": ExpectationBody}
    event_types = (EventType.SAVED_CONTEXT_UPDATED,)
    subject = Subject(
        create=actions.create_saved_context,
        update=actions.update_saved_context,
        delete=actions.delete_saved_context,
        lock=actions.access_saved_context_for_update,
    )

    def check_values(self, obj: SavedContext, form: forms.ModelForm) -> None:
        super().check_values(obj, form)
        stored = SavedContext.objects.filter(pk=obj.pk).values_list("expectations", flat=True).first()
        actions.check_saved_context(obj, Caller.system(), stored=stored or ())


@admin.register(UserRun)
class UserRunAdmin(ReadOnlyModelAdmin):
    list_display = ("created_at", "caller_name", "state", "environment", "flag", "rows_done", "rows")
    list_filter = ("state", "environment")
    search_fields = ("caller_name", "file_name")
    exclude = ("body",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[UserRun]:
        return super().get_queryset(request).defer("body", "counts")


@admin.register(Analysis)
class AnalysisAdmin(ReadOnlyModelAdmin):
    list_display = ("created_at", "name", "flag", "environment", "caller_name", "state")
    list_filter = ("state", "environment")
    search_fields = ("name", "flag__name", "caller_name")
    exclude = ("body",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Analysis]:
        return super().get_queryset(request).defer("body", "result")
