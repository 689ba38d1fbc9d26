"""/segments/ID/list: searches the list of a segment, downloads it, and changes it after showing the difference."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from flagadmin.core.errors import AppError, Problem, ValidationError
from flagadmin.core.wording import format_size
from groups.console import Breadcrumbs, Column, Filter, ListPage, SubmitPage
from projects.drafts import FlagEdit
from projects.limits import Limits
from projects.reverts.offers import tell_done
from projects.segments import actions
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
from projects.segments.queries import weigh
from projects.segments.source_actions import find_source
from projects.segments.source_rules import show_url


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
