"""/segments/ID/list: searches the list of a segment, downloads it, and changes it after showing the difference.

/segments/ID/list/source: the URL that the list of a segment is kept in step with.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import AppError, Problem, ValidationError, format_size
from flagadmin.core.http.fields import path_id
from groups.console import ActionPage, Breadcrumbs, Column, EditPage, Filter, ListPage, Permission, SubmitPage
from projects.drafts import FlagEdit
from projects.history.queries import readable_events
from projects.models import ListSource
from projects.reverts.change_plan import tell_done
from projects.rules import Limits
from projects.segments import actions
from projects.segments.actions import weigh
from projects.segments.lists import (
    BODY_LIMIT,
    DEFAULT_FIELD,
    MODES,
    Difference,
    SentList,
    decode,
    describe_difference,
    find_list,
    may_be_list,
    read_csv,
    read_lines,
)
from projects.segments.pages import SEGMENTS, OfSegment
from projects.segments.rules import MAX_MINUTES, MIN_MINUTES, show_url
from projects.segments.source_task import fetch_soon, find_source, set_source, source_document


class ValueRow(NamedTuple):
    value: str


class SegmentListPage(OfSegment, ListPage, SubmitPage):
    """The list, and a form that sends another. The form is shown again with the difference before it is saved."""

    template_name = "segments/list.html"
    title = "List of segment {page.segment.name}"
    unchanged = "No flag that is on uses this segment."
    shown_by = "post"
    body_limit = BODY_LIMIT
    filters = (Filter("q", "Value"),)
    csv_name = "segment-{segment_id}"
    per_page = 100
    api_call = "PUT /api/admin/segments/{segment_id}/list"
    api_example = {"values": ["42", "7"]}
    sent: SentList | None = None

    def find(self) -> None:
        super().find()
        self.columns = (Column("value", self.field),)

    @property
    def field(self) -> str:
        stored = self.stored["constraints"]
        return (
            str(stored[0]["contextName"]) if stored else self.request.POST.get("field", "") or DEFAULT_FIELD
        )

    def get_rows(self, values: dict[str, str]) -> list[ValueRow]:
        return [ValueRow(value) for value in find_list(self.stored["constraints"]) if values["q"] in value]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        return self.try_to_submit()

    def read(self) -> list[Any]:
        """The constraints with the list that was sent. Raises ValidationError."""
        sent, limits = self.request.POST, Limits.from_settings()
        self.mode = sent.get("mode", "replace")
        if self.mode not in MODES:
            raise ValidationError.at("mode", f"must be one of {', '.join(MODES)}")
        file = self.request.FILES.get("file")
        if file is None:
            read = read_lines(sent.get("text", ""), limits)
        elif (file.name or "").lower().endswith((".csv", ".tsv")):
            column = sent.get("column", "").strip()
            read = read_csv(decode(file.read()), limits, column=column, field=self.field)
        else:
            read = read_lines(decode(file.read()), limits)
        self.sent = SentList(read.values, self.field)
        constraints, self.difference = actions.change_list(self.stored["constraints"], self.sent, self.mode)
        return constraints

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        return self.list_edits(self.read())

    def ask_first(self) -> HttpResponseBase | None:
        constraints = self.read()
        if "confirmed" in self.request.POST:
            return None
        self.check_version()
        self.segment.constraints = constraints
        actions.check_update(self.segment, self.stored.get("project"), caller=self.caller)
        return self.render_to_response(
            self.get_context_data(
                asking=True,
                difference=self.difference,
                described=describe_difference(self.difference.document()),
                weight=weigh(self.segment, constraints),
                size=len(find_list(constraints)),
                mode=self.mode,
                used=self.count_users(),
            )
        )

    def submit(self) -> str:
        assert self.sent is not None
        segment, difference = actions.update_list(
            self.segment.pk, self.sent, mode=self.mode, expected=self.version.expected, caller=self.caller
        )
        tell_done(self.request, _tell(segment.name, difference), caller=self.caller)
        return reverse("segment-list", args=[segment.pk])

    def refuse(self, error: AppError) -> HttpResponseBase:
        self.show_conflict(error)
        problems = error.details or [Problem("", error.message)]
        return self.render_to_response(self.get_context_data(problems=problems), status=error.status)

    def count_users(self) -> int:
        return len(actions.list_enabled_users(self.segment, self.caller))

    def get_breadcrumbs(self) -> Breadcrumbs:
        return (SEGMENTS, (self.stored["name"], reverse("segment", args=[self.segment.pk])))

    def get_context_data(self, problems: Sequence[Problem] = (), **kwargs: Any) -> dict[str, Any]:
        constraints = self.stored["constraints"]
        weight = weigh(self.segment, constraints)
        return super().get_context_data(
            **{
                "segment": self.segment,
                "field": self.field,
                "problems": problems,
                "locked": self.locked(),
                "possible": may_be_list(constraints),
                "new_field": not constraints,
                "count": len(find_list(constraints)),
                "stored_size": format_size(weight.size),
                "source": (source := find_source(self.segment.pk)),
                "source_url": source and show_url(source),
                "most": Limits.from_settings().segment_list,
                "text": "\n".join(self.sent.values) if self.sent else self.request.POST.get("text", ""),
                **kwargs,
            }
        )


def _tell(name: str, difference: Difference) -> str:
    if not difference:
        return f"The list of segment {name} already had these values."
    return f"Saved the list of segment {name}: + {difference.added:,}, − {difference.removed:,}."


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
