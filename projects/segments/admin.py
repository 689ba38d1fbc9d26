"""Segments in the admin site."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin, checked_body
from groups.permissions import Permission
from projects.admin_forms import values
from projects.models import Segment
from projects.segments import actions as segments
from projects.strategies.constraint_serializers import ConstraintBody


@admin.register(Segment)
class SegmentAdmin(ActionModelAdmin):
    list_display = ("name", "id", "project", "description", "created_by", "created_at")
    list_filter = ("project",)
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_always = ("created_by", "created_at")
    fields = ("name", "description", "constraints", "project", "created_by", "created_at")
    extra_help_texts = {
        "constraints": 'A list; all must hold. Each: {"contextName": …, "operator": …, "values": […]} or "value"; '
        'optional "inverted" and "caseInsensitive".',
        "project": "The project whose strategies may use it; empty: all.",
    }

    event_types = (EventType.SEGMENT_UPDATED,)

    def lock(self, obj: Segment, caller: Caller) -> object:
        return segments.access_segment_for_update(caller, obj.pk, Permission.UPDATE_SEGMENT)

    def check_values(self, obj: Segment, form: forms.ModelForm) -> None:
        obj.constraints = checked_body(ConstraintBody, obj.constraints, "constraints", many=True)
        segments.check_segment(obj)

    def create(self, obj: Segment, form: Any, caller: Caller) -> Segment:
        return segments.create_segment(values(form) | {"constraints": obj.constraints}, caller=caller)

    def change(self, obj: Segment, form: Any, caller: Caller) -> None:
        changes = values(form) | {"constraints": obj.constraints}
        segments.update_segment(obj.pk, changes, caller=caller)

    def remove(self, obj: Segment, form: Any, caller: Caller) -> None:
        segments.delete_segment(obj.pk, caller=caller)

    def deletion_checks(self, obj: Segment, caller: Caller) -> Any:
        yield partial(segments.check_segment_is_unused, obj)
