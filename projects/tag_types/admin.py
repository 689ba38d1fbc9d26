"""Tag types in the admin site."""

from functools import partial

from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.admin_site.base import Subject, SubjectAdmin
from groups.permissions import Permission
from projects.models import TagType
from projects.tag_types import actions


@admin.register(TagType)
class TagTypeAdmin(SubjectAdmin):
    list_display = ("name", "description", "icon", "color")
    search_fields = ("name", "description")
    readonly_on_change = ("name",)
    readonly_always = ("created_at",)
    fields = ("name", "description", "icon", "color", "created_at")
    extra_help_texts = {"color": "For example #FFFFFF."}
    event_types = (EventType.TAG_TYPE_UPDATED,)
    subject = Subject(
        create=actions.create_tag_type,
        update=actions.update_tag_type,
        delete=actions.delete_tag_type,
        lock=partial(actions.access_tag_type_for_update, permission=Permission.UPDATE_TAG_TYPE),
        check=actions.check_tag_type,
        deletion_checks=(actions.check_tag_type_is_unused,),
    )
