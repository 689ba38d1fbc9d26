"""/playground/contexts/: the list of saved contexts, and the pages that create, edit and delete one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import clip
from flagadmin.core.http.fields import path_id
from flagadmin.core.lists.pages import MAX_OPTIONS, Column, Filter
from groups.console import Breadcrumbs, ConfirmPage, EditPage, FormPage, ListPage, read_next_page
from playground.models import SavedContext
from playground.pages.query import as_json, flatten_context, read_query, restore_kept
from playground.saved_contexts import actions
from playground.saved_contexts.expectations import check_expectations, list_expectations
from playground.saved_contexts.expectations_page import (
    ExpectationRow,
    NewSavedContextForm,
    SavedContextForm,
    make_expectation_row,
    make_expectation_rows,
)
from playground.saved_contexts.queries import build_visible_document, select_visible_expectations
from projects.history.queries import readable_events
from projects.models import Flag, Project

API = "/api/admin/playground/contexts"
SAVED_CONTEXTS = ("Saved contexts", reverse_lazy("saved-contexts"))
MAX_SUMMARY_LENGTH = 200


@dataclass(frozen=True, slots=True)
class ContextRow:
    id: int
    name: str
    note: str
    summary: str
    expectations: int
    project: str
    evaluate: str


def evaluate_url(name: str) -> str:
    """The playground with a saved context."""
    return f"{reverse('playground')}?{urlencode({'saved': name})}"


def summarize_context(context: Mapping[str, Any]) -> str:
    """The context in a line: `userId 42 · plan pro`."""
    fields = flatten_context(context)
    first = [name for name in fields if name not in context.get("properties", {})]
    texts = (f"{name} {fields[name]}" for name in dict.fromkeys([*first, *fields]))
    return clip(" · ".join(texts), MAX_SUMMARY_LENGTH)


class SavedContextsPage(ListPage):
    title = "Saved contexts"
    lead = "Contexts with a name, to evaluate and compare flags for."
    noun = "saved context,saved contexts"
    new = ("saved-context-new", "New saved context")
    none_yet = "No saved contexts yet. The playground saves the one in its form."
    begin = ("playground", "Open the playground")
    default_sort = "name"
    columns = (
        Column(
            "name",
            "Name",
            by=("name",),
            link='{% url "saved-context" row.id %}',
            below="note|truncatechars:200",
        ),
        Column(
            "summary",
            "Context",
            cell='{{ row.summary|default:"empty" }} '
            '<a class="small" href="{{ row.evaluate }}" aria-label="Evaluate {{ row.name }}">Evaluate</a>',
        ),
        Column("expectations", "Expectations", by=("expectations",), numeric=True),
        Column("project", "Project", by=("project",), shown='default:"All"'),
    )
    filters = (Filter("q", "Name or note", by=("name", "note")),)
    api_call = f"GET {API}"

    def get_rows(self, values: dict[str, str]) -> list[ContextRow]:
        contexts = self.filter_rows(SavedContext.objects.readable_by(self.caller), values)
        expectations = select_visible_expectations(self.caller, contexts)
        return [
            ContextRow(
                id=saved.pk,
                name=saved.name,
                note=saved.note,
                summary=summarize_context(saved.context),
                expectations=len(expectations[saved.pk]),
                project=saved.project_id or "",
                evaluate=evaluate_url(saved.name),
            )
            for saved in contexts
        ]

    def may_create(self) -> bool:
        return actions.may_save(self.caller)


class SavedContextPage(FormPage):
    """Base class of the pages that create and edit a saved context."""

    problem_fields = {"project": "project_id"}
    button = "Save context"
    parents = (SAVED_CONTEXTS,)

    def flags(self) -> QuerySet[Flag]:
        """The flags that expectations may name."""
        return Flag.objects.active().readable_by(self.caller)

    def get_form_kwargs(self) -> dict[str, Any]:
        names = self.flags().order_by("name").values_list("name", flat=True)
        return super().get_form_kwargs() | {"flags": list(names[:MAX_OPTIONS])}


class NewSavedContext(SavedContextPage):
    """Starts with the context of a playground URL, if it has one."""

    template_name = "console/form.html"
    title = "Save a context"
    form_class = NewSavedContextForm
    api_call = f"POST {API}"
    api_example = {
        "name": "Norwegian beta user",
        "context": {"userId": "42", "properties": {"country": "NO"}},
    }

    def find(self) -> None:
        ids = Project.objects.active().readable_by(self.caller).values_list("id", flat=True)
        self.projects = [name for name in ids if actions.may_change(self.caller, name)]
        if not self.projects:
            actions.check_may_change(self.caller, None)

    def get_form_kwargs(self) -> dict[str, Any]:
        everywhere = self.caller.can(actions.EVERYWHERE)
        return super().get_form_kwargs() | {"projects": self.projects, "everywhere": everywhere}

    def get_initial(self) -> dict[str, Any]:
        query = read_query(restore_kept(self.request.GET), default_environment="")
        [project, *others] = query.projects or [""]
        context = query.contexts[0] if query.contexts else {}
        return {"context": as_json(context), "project_id": "" if others else project}

    def submit(self, form: NewSavedContextForm) -> str:
        saved = actions.create_saved_context(form.cleaned_data, caller=self.caller)
        back = read_next_page(self.request) or reverse("saved-contexts")
        return self.done(f"Saved context {saved.name}.", back)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        cancel = read_next_page(self.request) or reverse("saved-contexts")
        return super().get_context_data(cancel=cancel, **kwargs)


class EditSavedContext(EditPage, SavedContextPage):
    title = "{page.saved.name}"
    template_name = "saved_contexts/saved_context.html"
    form_class = SavedContextForm
    api_call = f"PUT {API}/{{context_id}}"

    def find(self) -> None:
        identifier = path_id(self.kwargs["context_id"], "Saved context")
        self.saved = actions.access_saved_context(self.caller, identifier)
        if self.request.method == "POST":
            actions.check_may_change(self.caller, self.saved.project_id)

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(type=EventType.SAVED_CONTEXT_UPDATED, after__id=self.saved.pk)

    def flags(self) -> QuerySet[Flag]:
        flags, project = super().flags(), self.saved.project_id
        return flags.filter(project=project) if project else flags

    def get_current_document(self) -> dict[str, Any]:
        return build_visible_document(self.caller, self.saved)

    def get_initial(self) -> dict[str, Any]:
        return {
            "name": self.saved.name,
            "note": self.saved.note,
            "context": as_json(self.saved.context),
            "expectations": make_expectation_rows(
                build_visible_document(self.caller, self.saved)["expectations"]
            ),
        }

    def submit(self, form: SavedContextForm) -> str:
        expected = self.version.expected
        saved = actions.update_saved_context(
            self.saved.pk, form.cleaned_data, expected=expected, caller=self.caller
        )
        return self.done(f"Changed context {saved.name}.", reverse("saved-contexts"))

    def checked(self) -> list[ExpectationRow]:
        """Checks its expectations and lists them, unmet ones first."""
        stored = actions.access_saved_context(self.caller, self.saved.pk)
        checks = check_expectations(self.caller, list_expectations(self.caller, contexts=[stored]))
        return [
            make_expectation_row(check.expectation, check)
            for check in sorted(checks, key=lambda check: check.met)
        ]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            saved=self.saved,
            context_text=as_json(self.saved.context),
            evaluate=evaluate_url(self.saved.name),
            expectations=self.checked(),
            may_edit=actions.may_change(self.caller, self.saved.project_id),
            **kwargs,
        )

    def get_api_body(self) -> dict[str, Any]:
        document = build_visible_document(self.caller, self.saved)
        return {key: document[key] for key in ("name", "context", "note", "expectations")}


class DeleteSavedContext(ConfirmPage):
    api_call = f"DELETE {API}/{{context_id}}"

    def plan(self) -> dict[str, Any]:
        self.saved = actions.access_saved_context_to_change(
            self.caller, path_id(self.kwargs["context_id"], "Saved context")
        )
        name = self.saved.name
        return {
            "title": f"Delete saved context {name}",
            "removed_items": [f"saved context {name}: {summarize_context(self.saved.context) or 'empty'}"],
        }

    def act(self) -> tuple[str, str]:
        saved = actions.access_saved_context(self.caller, path_id(self.kwargs["context_id"], "Saved context"))
        actions.delete_saved_context(saved.pk, caller=self.caller)
        return f"Deleted saved context {saved.name}.", reverse("saved-contexts")

    def get_breadcrumbs(self) -> Breadcrumbs:
        page = reverse("saved-context", args=[self.saved.pk])
        return (SAVED_CONTEXTS, (self.saved.name, page))
