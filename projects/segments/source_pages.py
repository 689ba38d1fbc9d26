"""/segments/ID/list/source: the URL that the list of a segment is kept in step with."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.http.parameters import path_id
from groups.console import ActionPage, Breadcrumbs, EditPage, Permission
from projects.history.queries import readable_events
from projects.models import ListSource
from projects.segments import actions
from projects.segments.pages import SEGMENTS
from projects.segments.source_actions import fetch_soon, find_source, set_source, source_document
from projects.segments.source_rules import MAX_MINUTES, MIN_MINUTES


class ListSourceForm(forms.Form):
    url = forms.CharField(
        required=False,
        label="Address",
        help_text="Like https://crm.example.com/beta.csv. Leave empty to stop fetching.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
    )
    format = forms.ChoiceField(choices=ListSource.Format.choices)
    column = forms.CharField(
        required=False,
        max_length=255,
        label="Column",
        help_text="Of a CSV file with several columns, or the member of objects in a JSON list.",
    )
    minutes = forms.IntegerField(
        min_value=MIN_MINUTES,
        max_value=MAX_MINUTES,
        label="Minutes between fetches",
        help_text=f"{MIN_MINUTES} to {MAX_MINUTES:,}, which is a day.",
    )


class ListSourcePage(EditPage):
    title = "Keep the list of {page.segment.name} in step"
    template_name = "console/form.html"
    form_class = ListSourceForm
    button = "Save source"
    problem_fields = {"intervalMinutes": "minutes"}
    api_call = "PUT /api/admin/segments/{segment_id}/list/source"

    def find(self) -> None:
        """Raises NotFound, NoAccess."""
        identifier = path_id(self.kwargs["segment_id"], "Segment")
        self.segment = actions.access_segment_with(self.caller, identifier, Permission.UPDATE_SEGMENT)
        self.stored = source_document(find_source(identifier))

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller).filter(type=EventType.SEGMENT_LIST_SOURCE_UPDATED)
        return events.filter(after__id=self.segment.pk)

    def get_current_document(self) -> dict[str, Any]:
        return self.stored

    def get_initial(self) -> dict[str, Any]:
        names = {"url": "url", "format": "format", "column": "column", "minutes": "intervalMinutes"}
        stored = {field: self.stored[name] for field, name in names.items()}
        return stored if stored["url"] else {"format": ListSource.Format.LINES, "minutes": 60}

    def get_breadcrumbs(self) -> Breadcrumbs:
        pk = self.segment.pk
        return (
            SEGMENTS,
            (self.segment.name, reverse("segment", args=[pk])),
            ("List of values", reverse("segment-list", args=[pk])),
        )

    def submit(self, form: ListSourceForm) -> str:
        values = form.cleaned_data if form.cleaned_data["url"] else None
        set_source(self.segment.pk, values, expected=self.version.expected, caller=self.caller)
        done = "Saved the source" if values else "The list is no longer fetched: removed the source"
        return self.done(
            f"{done} of the list of segment {self.segment.name}.",
            reverse("segment-list", args=[self.segment.pk]),
        )

    def get_api_body(self) -> dict[str, Any]:
        return {"url": "https://crm.example.com/beta.txt", "format": "lines", "intervalMinutes": 60}


class FetchListNow(ActionPage):
    api_call = "POST /api/admin/segments/{segment_id}/list/source/fetch"

    def act(self) -> str:
        fetch_soon(path_id(self.kwargs["segment_id"], "Segment"), caller=self.caller)
        return "The list is being fetched. Reload this page in a few seconds to see what came of it."

    def get_success_url(self) -> str:
        return reverse("segment-list", args=[self.kwargs["segment_id"]])
