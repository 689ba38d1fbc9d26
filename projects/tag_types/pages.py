"""/tag-types/: the list of tag types, and the pages that create, edit and delete one."""

from typing import Any

from django import forms
from django.db.models import Count, QuerySet
from django.urls import reverse, reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from groups.console import ActionPage, Column, EditPage, Filter, FormPage, ListPage, Permission
from projects.history.queries import readable_events
from projects.models import TagType
from projects.tag_types import actions as tag_types


class TagTypesPage(ListPage):
    title = "Tag types"
    lead = "A tag is a type and a value: team:payments."
    noun = "tag type,tag types"
    new = ("tag-type-new", "New tag type")
    creates = Permission.CREATE_TAG_TYPE
    none_yet = "No tag types yet."
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Tag type",
            by=("name",),
            cell='{% if may_edit %}<a href="{% url "tag-type" row.name %}">{{ row.name }}</a>'
            "{% else %}<strong>{{ row.name }}</strong>{% endif %}",
        ),
        Column("description", "Description", unlabeled=True),
        Column("used", "Tags", by=("used",), numeric=True),
        Column(
            "",
            "Actions",
            cell='{% if not row.used %}{% include "tag_types/delete.html" %}{% endif %}',
            permission=Permission.DELETE_TAG_TYPE,
        ),
    )
    filters = (Filter("q", "Name or description", by=("name", "description")),)
    api_call = "GET /api/admin/tag-types"

    def get_rows(self, values: dict[str, str]) -> QuerySet[Any]:
        return TagType.objects.annotate(used=Count("tags"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may_edit=self.caller.can(Permission.UPDATE_TAG_TYPE), **kwargs)


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
    parents = (("Tag types", reverse_lazy("tag-types")),)
    api_call = "POST /api/admin/tag-types"
    api_example = {"name": "team", "description": ""}

    def submit(self, form: Any) -> str:
        tag_type = tag_types.create_tag_type(form.cleaned_data, caller=self.caller)
        return self.done(f"Created tag type {tag_type.name}.", reverse("tag-types"))


class EditTagType(EditPage, NewTagType):
    form_class = TagTypeForm
    permission = Permission.UPDATE_TAG_TYPE
    button = "Save tag type"
    title = "Tag type {name}"
    api_call = "PUT /api/admin/tag-types/{name}"
    api_example = {"description": ""}

    def find(self) -> None:
        super().find()
        self.tag_type = tag_types.access_tag_type(self.kwargs["name"])

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.TAG_TYPE_UPDATED, subject=self.tag_type.pk)

    def get_current_document(self) -> dict[str, Any]:
        return self.tag_type.document()

    def get_initial(self) -> dict[str, Any]:
        return {name: getattr(self.tag_type, name) for name in TagTypeForm.base_fields}

    def submit(self, form: Any) -> str:
        name, expected = self.kwargs["name"], self.version.expected
        tag_type = tag_types.update_tag_type(name, form.cleaned_data, expected=expected, caller=self.caller)
        return self.done(f"Changed tag type {tag_type.name}.", reverse("tag-types"))


class DeleteTagType(ActionPage):
    """Deletes without a confirm page: only unused tag types can be deleted, so no data is lost."""

    success_url = reverse_lazy("tag-types")

    def act(self) -> str:
        tag_types.delete_tag_type(self.kwargs["name"], caller=self.caller)
        return f"Deleted tag type {self.kwargs['name']}."
