"""/context-fields/: the list of context fields, and the pages that create, edit and delete one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy
from django.utils.html import format_html

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import choices, pluralize
from groups.console import (
    Breadcrumbs,
    Column,
    ConfirmPage,
    ConsolePage,
    EditPage,
    Filter,
    FormPage,
    ListPage,
    Permission,
)
from projects.context_fields import actions
from projects.history.queries import readable_events
from projects.models import ContextField, Project
from projects.used_by.queries import (
    UNUSED,
    Uses,
    count_context_field_usage,
    list_context_field_uses,
    paginate_uses,
)

CONTEXT_FIELDS = ("Context fields", reverse_lazy("context-fields"))


def field_url(name: str) -> str:
    return reverse("context-field", args=[name])


@dataclass(frozen=True, slots=True)
class FieldRow:
    name: str
    url: str
    description: str
    values: str
    sticky: str
    project: str
    flags: int


class ContextFieldsPage(ListPage):
    title = "Context fields"
    lead = "What applications send with each evaluation. Conditions can use other fields too."
    noun = "context field,context fields"
    new = ("context-field-new", "New context field")
    none_yet = "No context fields yet."
    columns = (
        Column("name", "Field", by=("name",), link="{{ row.url }}", below="description"),
        Column("values", "Legal values", shown="truncatechars:120", none="Any"),
        Column("sticky", "Stickiness", by=("sticky",)),
        Column(
            "project",
            "Project",
            by=("project",),
            cell='<a href="{% url "project" row.project %}">{{ row.project }}</a>',
            none="All",
        ),
        Column("flags", "Used by flags", by=("flags",), numeric=True),
    )
    filters = (Filter("q", "Name or description", by=("name", "description")),)
    api_call = "GET /api/admin/context"

    def get_rows(self, values: dict[str, str]) -> list[FieldRow]:
        usage = count_context_field_usage(self.caller)
        return [
            FieldRow(
                name=field.name,
                url=field_url(field.name),
                description=field.description or "",
                values=", ".join(item["value"] for item in field.legal_values),
                sticky="yes" if field.stickiness else "",
                project=field.project_id or "",
                flags=usage.get(field.name, UNUSED)["usedInFeatures"],
            )
            for field in self.filter_rows(ContextField.objects.readable_by(self.caller), values)
        ]

    def may_create(self) -> bool:
        return bool(list_own_projects(self)) or self.caller.can(Permission.CREATE_CONTEXT_FIELD)


def list_own_projects(page: ConsolePage) -> list[str]:
    """Ids of the projects in which the caller may create context fields."""
    ids = Project.objects.active().readable_by(page.caller).values_list("id", flat=True)
    everywhere = page.caller.can(Permission.CREATE_CONTEXT_FIELD)
    return [name for name in ids if everywhere or page.caller.can(actions.OWN_PROJECT, project=name)]


class ContextFieldForm(forms.Form):
    description = forms.CharField(required=False)
    stickiness = forms.BooleanField(
        required=False,
        label="Stickiness",
        help_text="Rollouts and variants can use it to keep their results stable.",
    )
    sort_order = forms.IntegerField(label="Sort order", min_value=-(2**31), max_value=2**31 - 1, initial=10)
    legal_values = forms.CharField(
        required=False,
        label="Legal values",
        help_text=format_html(
            "One per line, optional description: <code>{}</code>. Any value is allowed by default.",
            "pro :: pays monthly",
        ),
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono"}),
    )

    def clean_legal_values(self) -> list[dict[str, str]]:
        lines = [line.strip() for line in self.cleaned_data["legal_values"].splitlines()]
        return [_read_legal_value(line) for line in lines if line]


class NewContextFieldForm(ContextFieldForm):
    name = forms.CharField(max_length=255, widget=forms.TextInput(attrs={"spellcheck": "false"}))
    project_id = forms.ChoiceField(required=False, label="Scope")
    field_order = ["name", "description", "project_id"]

    def __init__(self, *args: Any, projects: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        options = [("", "all projects"), *((name, name) for name in projects)]
        self.fields["project_id"].choices = options  # type: ignore[attr-defined]

    def clean_project_id(self) -> str | None:
        return self.cleaned_data["project_id"] or None


def _read_legal_value(line: str) -> dict[str, str]:
    value, _, description = (part.strip() for part in line.partition(" :: "))
    return {"value": value} | ({"description": description} if description else {})


def format_legal_values(values: Sequence[dict[str, Any]]) -> str:
    """The legal values as the text of the form's input, one per line."""
    return "\n".join(" :: ".join(filter(None, (v["value"], v.get("description")))) for v in values)


class ContextFieldPage(FormPage):
    """Base class of the pages that create and edit a context field."""

    problem_fields = {"sortOrder": "sort_order", "legalValues": "legal_values", "project": "project_id"}
    parents = (CONTEXT_FIELDS,)


class NewContextField(ContextFieldPage):
    template_name = "console/form.html"
    title = "New context field"
    form_class = NewContextFieldForm
    button = "Create context field"
    api_call = "POST /api/admin/context"
    api_example = {"name": "plan", "legalValues": [{"value": "free"}, {"value": "pro"}]}

    def find(self) -> None:
        self.projects = list_own_projects(self)
        if not self.projects:
            actions.check_may_create(self.caller, None)

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"projects": self.projects}

    def submit(self, form: NewContextFieldForm) -> str:
        field = actions.create_context_field(form.cleaned_data, caller=self.caller)
        return self.done(f"Created context field {field.name}.", reverse("context-fields"))


class EditContextField(EditPage, ContextFieldPage):
    template_name = "context_fields/context_field.html"
    form_class = ContextFieldForm
    title = "Context field {name}"
    button = "Save context field"
    api_call = "PUT /api/admin/context/{name}"

    def find(self) -> None:
        self.field = actions.access_context_field(self.caller, self.kwargs["name"])
        if self.request.method == "POST":
            actions.access_context_field_with(self.caller, self.field.pk, Permission.UPDATE_CONTEXT_FIELD)

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.CONTEXT_FIELD_UPDATED, subject=self.field.pk)

    def get_current_document(self) -> dict[str, Any]:
        return self.field.document()

    def may(self, permission: Permission) -> bool:
        project = self.field.project_id
        own = bool(project) and self.caller.can(actions.OWN_PROJECT, project=project)
        return own or self.caller.can(permission)

    def get_initial(self) -> dict[str, Any]:
        return {
            "description": self.field.description,
            "stickiness": self.field.stickiness,
            "sort_order": self.field.sort_order,
            "legal_values": format_legal_values(self.field.legal_values),
        }

    def submit(self, form: ContextFieldForm) -> str:
        changes = form.cleaned_data | {"description": form.cleaned_data["description"] or None}
        expected = self.version.expected
        actions.update_context_field(self.field.pk, changes, expected=expected, caller=self.caller)
        return self.done(f"Changed context field {self.field.name}.", reverse("context-fields"))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            field_values=self.field.legal_values,
            description=self.field.description,
            uses=paginate_uses(self.request, list_context_field_uses(self.field.pk, self.caller)),
            may_edit=self.may(Permission.UPDATE_CONTEXT_FIELD),
            field=self.field,
            may_delete=self.may(Permission.DELETE_CONTEXT_FIELD),
            **kwargs,
        )

    def get_api_body(self) -> dict[str, Any]:
        document = self.field.document()
        return {key: document[key] for key in ("description", "stickiness", "sortOrder", "legalValues")}


def list_consequences(name: str, uses: Uses) -> list[str]:
    """Lists the effects of deleting the field on the objects that use it."""
    effects = []
    if any(uses.values()):
        effects.append(
            f"Whatever reads {name} keeps working, but {name} is no longer offered in forms and any value is accepted."
        )
    if uses["projects"]:
        ids = choices(project["id"] for project in uses["projects"])
        effects.append(f"The settings of {ids} cannot be saved until they have another default stickiness.")
    return effects


class DeleteContextField(ConfirmPage):
    api_call = "DELETE /api/admin/context/{name}"

    def plan(self) -> dict[str, Any]:
        permission = Permission.DELETE_CONTEXT_FIELD
        self.field = actions.access_context_field_with(self.caller, self.kwargs["name"], permission)
        name, count = self.field.name, len(self.field.legal_values)
        uses = list_context_field_uses(name, self.caller)
        return {
            "title": f"Delete context field {name}",
            "consequences": list_consequences(name, uses),
            "uses": paginate_uses(self.request, uses),
            "removed_items": [f"context field {name} with its {pluralize(count, 'legal value')}"],
        }

    def act(self) -> tuple[str, str]:
        name = self.kwargs["name"]
        actions.delete_context_field(name, caller=self.caller)
        return f"Deleted context field {name}.", reverse("context-fields")

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (CONTEXT_FIELDS, (self.field.name, field_url(self.field.name)))
