"""Segments in the admin site."""

from functools import partial

from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.admin_site.base import Subject, SubjectAdmin
from groups.permissions import Permission
from projects.models import Segment
from projects.segments import actions
from projects.strategies.constraint_serializers import ConstraintBody

CONSTRAINTS = (
    '[{"contextName": …, "operator": …, "values": […] (or "value"), optional "inverted", "caseInsensitive"}]'
)


@admin.register(Segment)
class SegmentAdmin(SubjectAdmin):
    list_display = ("name", "id", "project", "description", "created_by", "created_at")
    list_filter = ("project",)
    search_fields = ("name", "description")
    raw_id_fields = ("project",)
    readonly_always = ("created_by", "created_at")
    fields = ("name", "description", "constraints", "project", "created_by", "created_at")
    extra_help_texts = {"constraints": CONSTRAINTS}
    json_lists = {"constraints": ConstraintBody}
    event_types = (EventType.SEGMENT_UPDATED,)
    subject = Subject(
        create=actions.create_segment,
        update=actions.update_segment,
        delete=actions.delete_segment,
        lock=partial(actions.access_segment_for_update, permission=Permission.UPDATE_SEGMENT),
        check=actions.check_segment,
        deletion_checks=(actions.check_segment_is_unused,),
    )
