"""/tag-types/: the list of tag types, and the pages that create, edit and delete one."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.lists.pages import Column, Filter, curl_for
from groups.console import Crumbs, EditPage, FormPage, ListPage
from groups.permissions import Permission
from projects.console import ActionPage
from projects.history.queries import readable_events
from projects.models import TagType
from projects.tag_types import actions as tag_types
from projects.tag_types.documents import tag_type_document


class TagTypesPage(ListPage):
    template_name = "tag_types/tag_types.html"
    title = "Tag types"
    csv_name = "tag-types"
    default_sort = "name"
    columns = (
        Column("name", "Tag type", by=("name",)),
        Column("description", "Description"),
        Column("used", "Tags", by=("used",), numeric=True),
    )

    def get_filters(self) -> Sequence[Filter]:
        return (Filter("q", "Name or description"),)

    def rows(self, values: dict[str, str]) -> QuerySet[Any]:
        text = values["q"]
        tag_types = TagType.objects.filter(Q(name__icontains=text) | Q(description__icontains=text))
        return tag_types.annotate(used=Count("tags"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            may_create=self.caller.can(Permission.CREATE_TAG_TYPE),
            may_edit=self.caller.can(Permission.UPDATE_TAG_TYPE),
            may_delete=self.caller.can(Permission.DELETE_TAG_TYPE),
            **kwargs,
        )

    def curl(self) -> str:
        return curl_for(self.request, "GET", "/api/admin/tag-types")


class TagTypeForm(forms.Form):
    description = forms.CharField(required=False)
    icon = forms.CharField(required=False, max_length=255)
    color = forms.CharField(required=False, label="Color", help_text="For example #FFFFFF.")


class NewTagTypeForm(TagTypeForm):
    name = forms.CharField(max_length=50, widget=forms.TextInput(attrs={"spellcheck": "false"}))
    field_order = ["name"]


class NewTagType(FormPage):
    template_name = "console/form.html"
    title = "New tag type"
    form_class: type[forms.Form] = NewTagTypeForm
    permission = Permission.CREATE_TAG_TYPE
    button = "Create tag type"

    def find(self) -> None:
        self.caller.check(self.permission)

    def submit(self, form: Any) -> str:
        tag_type = tag_types.create_tag_type(form.cleaned_data, caller=self.caller)
        messages.success(self.request, f"Created tag type {tag_type.name}.")
        return reverse("tag-types")

    def crumbs(self) -> Crumbs:
        return (("Tag types", reverse("tag-types")),)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(button=self.button, cancel=self.crumbs()[0][1], **kwargs)

    def curl(self) -> str:
        return curl_for(self.request, "POST", "/api/admin/tag-types", {"name": "team", "description": ""})


class EditTagType(EditPage, NewTagType):
    form_class = TagTypeForm
    permission = Permission.UPDATE_TAG_TYPE
    button = "Save tag type"

    def find(self) -> None:
        self.caller.check(self.permission)
        self.tag_type = tag_types.access_tag_type(self.kwargs["name"])

    def events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.TAG_TYPE_UPDATED, subject=self.tag_type.pk)

    def current_document(self) -> dict[str, Any]:
        return tag_type_document(self.tag_type)

    def get_initial(self) -> dict[str, Any]:
        return {name: getattr(self.tag_type, name) for name in TagTypeForm.base_fields}

    def submit(self, form: Any) -> str:
        name, expected = self.kwargs["name"], self.version.expected
        tag_type = tag_types.update_tag_type(name, form.cleaned_data, expected=expected, caller=self.caller)
        messages.success(self.request, f"Changed tag type {tag_type.name}.")
        return reverse("tag-types")

    def get_title(self) -> str:
        return f"Tag type {self.kwargs['name']}"

    def curl(self) -> str:
        address = f"/api/admin/tag-types/{quote(self.kwargs['name'], '')}"
        return curl_for(self.request, "PUT", address, {"description": ""})


class DeleteTagType(ActionPage):
    """Deletes without a confirm page: only unused tag types can be deleted, so no data is lost."""

    def act(self) -> str:
        tag_types.delete_tag_type(self.kwargs["name"], caller=self.caller)
        return f"Deleted tag type {self.kwargs['name']}."

    def back(self) -> str:
        return reverse("tag-types")
