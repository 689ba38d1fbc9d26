"""Tag types in the admin site."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin

from flagadmin.core.audit.events import EventType
from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin
from groups.permissions import Permission
from projects.admin_forms import values
from projects.models import TagType
from projects.tag_types import actions as tag_types


@admin.register(TagType)
class TagTypeAdmin(ActionModelAdmin):
    list_display = ("name", "description", "icon", "color")
    search_fields = ("name", "description")
    readonly_on_change = ("name",)
    readonly_always = ("created_at",)
    fields = ("name", "description", "icon", "color", "created_at")
    extra_help_texts = {
        "name": "2 to 50 of letters, digits and - . _ ~. It never changes.",
        "color": "For example #FFFFFF.",
    }

    event_types = (EventType.TAG_TYPE_UPDATED,)

    def lock(self, obj: TagType, caller: Caller) -> object:
        return tag_types.access_tag_type_for_update(caller, obj.pk, Permission.UPDATE_TAG_TYPE)

    def check_values(self, obj: TagType, form: forms.ModelForm) -> None:
        tag_types.check_tag_type(obj)

    def create(self, obj: TagType, form: Any, caller: Caller) -> TagType:
        return tag_types.create_tag_type(self.given(form), caller=caller)

    def change(self, obj: TagType, form: Any, caller: Caller) -> None:
        tag_types.update_tag_type(obj.pk, self.given(form), caller=caller)

    def remove(self, obj: TagType, form: Any, caller: Caller) -> None:
        tag_types.delete_tag_type(obj.pk, caller=caller)

    def deletion_checks(self, obj: TagType, caller: Caller) -> Any:
        yield partial(tag_types.check_tag_type_is_unused, obj)

    def given(self, form: Any) -> dict[str, Any]:
        return values(form) | {"description": form.cleaned_data["description"]}
