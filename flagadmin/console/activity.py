"""The audit log, /activity/: who changed what, newest first, one entry for each change."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import Any, Protocol, TypeVar

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from flagadmin.core.audit.events import KINDS, list_types
from flagadmin.core.audit.models import AuditEvent, AuditEvents
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.fields import is_id
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.filters import FIRST, LAST, PARAMETERS, DateRange, find_zone, read_zone
from flagadmin.core.lists.pages import SPREADSHEET, Column, Filter, Listing, free_chips, set_chips
from groups.console import ConsolePage, ListPage
from projects.access import access_project
from projects.history.change_links import make_comparison_url, with_versions
from projects.history.changes import (
    MAX_EVENTS,
    ChangePage,
    GroupedChange,
    change_of,
    change_page,
    make_event_rows,
)
from projects.history.queries import EventFilter, in_present_projects, narrow_events, readable_events
from projects.models import Environment, Project
from projects.reverts.change_plan import add_reverts

PER_PAGE = 40
MAX_COUNTED = 10_000
CURSOR, CHANGE = "before", "change"  # URL parameters: the cursor of the page, and a single change to show
Segment = tuple[str, str, None, bool]
"""Its label and URL, no count, and whether it is the current one."""


class HasEvent(Protocol):
    @property
    def event(self) -> AuditEvent: ...


Dated = TypeVar("Dated", bound=HasEvent)
Day = tuple[tuple[str, str], list[Dated]]


class ChangesPage(ListPage):
    """Changes of the dates in the URL, narrowed by chips."""

    chips: Sequence[str]
    api_call = "GET /api/admin/events"

    def find(self) -> None:
        self.dates = DateRange.of(self.request.GET, read_zone(self.request))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing = kwargs["listing"]
        return super().get_context_data(
            dates=self.dates,
            ranges=list(self.ranges(listing)),
            zone_is_known=find_zone(self.request) is not None,
            date_names=PARAMETERS,
            set_chips=set_chips(listing, cleared=[CURSOR]),
            free_chips=free_chips(listing, self.chips, cleared=[CURSOR]),
            search=self.request.GET.get("q", "").strip(),
            kept=self.kept(),
            is_narrowed=listing.is_filtered or bool(self.dates.text),
            **kwargs,
        )

    def narrow(self, criteria: EventFilter) -> AuditEvents:
        """The events that the caller may read; of a project without those of an earlier one with its id."""
        events = narrow_events(readable_events(self.caller), criteria)
        return in_present_projects(events) if criteria.projects else events

    def kept(self) -> list[tuple[str, str]]:
        """The parameters that the search keeps, as hidden inputs."""
        parameters = self.request.GET.lists()
        return [
            (name, text)
            for name, values in parameters
            if name not in ("q", CURSOR, "format", SPREADSHEET)
            for text in values
        ]

    def with_reverts(self, changes: Sequence[GroupedChange]) -> list[GroupedChange]:
        return add_reverts(changes, back=self.request.get_full_path(), caller=self.caller)

    def days(self, changes: Sequence[Dated]) -> list[Day[Dated]]:
        def day(change: Dated) -> date:
            return change.event.created_at.astimezone(self.dates.zone).date()

        return [
            (self.dates.heading(day_of_changes), list(day_changes))
            for day_of_changes, day_changes in groupby(changes, day)
        ]

    def ranges(self, listing: Listing) -> Iterator[Segment]:
        others = dict.fromkeys((*PARAMETERS, CURSOR))
        for label, first, last in self.dates.usual:
            url = listing.url(**others | {FIRST: f"{first}", LAST: f"{last}"})
            yield label, url, None, (first, last) == self.dates.days


class ActivityPage(ChangesPage):
    """The audit log: the changes that match the filters and dates in the URL."""

    template_name = "console/activity.html"
    title = "Audit log"
    csv_name = "activity"
    columns = (
        Column("when", "When", csv=lambda event: iso(event.created_at)),
        Column("who", "Who", csv="actor_name"),
        Column("what", "What", csv=make_sentence),
        Column("project", "Project"),
        Column("why", "Why", csv="comment"),
    )
    chips = ("project", "environment", "kind", "person")

    def get_filters(self) -> Sequence[Filter]:
        projects = Project.objects.readable_by(self.caller).values_list("id", flat=True)
        environments = Environment.objects.values_list("name", flat=True)
        return (
            Filter("q", "Flag, name or comment"),
            Filter("project", "Project", [(project, project) for project in projects]),
            Filter("environment", "Environment", [(name, name) for name in environments]),
            Filter("kind", "Kind", [(kind, label) for kind, (label, _) in KINDS.items()]),
            Filter("person", "Person"),
            Filter("flag", "Flag"),
        )

    def get_rows(self, values: dict[str, str]) -> AuditEvents:
        """The matching events that the caller may read; if the URL names an event, only those of its change."""
        if event_id := self.request.GET.get(CHANGE):
            event = readable_events(self.caller).filter(pk=_read_number(CHANGE, event_id)).first()
            return change_of(event, caller=self.caller) if event else AuditEvent.objects.none()
        criteria = EventFilter(
            projects=list(filter(None, [values["project"]])),
            environments=list(filter(None, [values["environment"]])),
            features=list(filter(None, [values["flag"]])),
            types=list_types(values["kind"]) if values["kind"] else (),
            since=self.dates.since,
            until=self.dates.until,
            text=values["q"],
            person=values["person"],
        )
        return self.narrow(criteria)

    def find(self) -> None:
        if CHANGE in self.request.GET:
            self.per_page = MAX_EVENTS
        super().find()

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing = kwargs["listing"]
        if CHANGE in self.request.GET:
            changes = change_page(listing.all_rows, caller=self.caller, size=1).changes
            kwargs |= {
                "change": next(iter(self.with_reverts(changes)), None),
                "change_rows": with_versions(
                    make_event_rows(listing.rows, caller=self.caller), listing.all_rows
                ),
                "whom_url": make_comparison_url(listing.all_rows),
                "every_url": listing.url(**{CHANGE: None}),
            }
            page = ChangePage((), None)
        else:
            page = change_page(listing.all_rows, caller=self.caller, before=self.cursor(), size=PER_PAGE)
        return super().get_context_data(
            days=self.days(self.with_reverts(page.changes)),
            older_url=listing.url(**{CURSOR: str(page.next)}) if page.next else "",
            newest_url=listing.url(**{CURSOR: None}) if self.cursor() else "",
            number=count_text(listing.all_rows),
            any_date_url=listing.url(**dict.fromkeys((*PARAMETERS, CURSOR))) if self.dates.text else "",
            **kwargs,
        )

    def cursor(self) -> int | None:
        text = self.request.GET.get(CURSOR, "")
        return _read_number(CURSOR, text) if text else None


def count_text(events: AuditEvents) -> str:
    """``38 events``, ``10,000+ events``"""
    number = events.order_by()[: MAX_COUNTED + 1].count()
    if number > MAX_COUNTED:
        return f"{MAX_COUNTED:,}+ events"
    return f"{number:,} event{'' if number == 1 else 's'}"


def _read_number(name: str, text: str) -> int:
    if not is_id(text):
        raise ValidationError.at(name, f"must be a number, not {text[:100]}")
    return int(text)


class ProjectActivity(ConsolePage):
    """Redirects from the address that the audit log of a project once had."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        query = request.GET.copy()
        query["project"] = access_project(self.caller, kwargs["project_id"]).pk
        return HttpResponseRedirect(f"{reverse('activity')}?{query.urlencode()}")
