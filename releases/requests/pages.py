"""/projects/ID/change-requests/: lists and shows change requests, and takes them through their states."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet
from django.urls import reverse
from django.utils import timezone

from flagadmin.core.errors import NotFound, ValidationError
from flagadmin.core.http.path_ids import path_id
from flagadmin.core.lists.pages import Column, Filter, curl_for
from groups.console import ConsolePage, Crumbs, ListPage
from playground.pages.lines import explain_in
from projects.access import access_project
from projects.console import ActionPage, api_path, project_crumbs, project_url
from projects.models import Segment
from projects.projects.environments import POLICY_PERMISSIONS
from projects.projects.head import project_head
from projects.strategies.sentences import strategy_summary
from releases.models import Change, ChangeRequest
from releases.requests import details, propose
from releases.requests.access import OPEN, access_request, may_edit
from releases.requests.approvals import approver_group_names, judge
from releases.requests.conflicts import (
    describe_conflict,
    find_conflict,
    narrow_payload,
    read_now,
    sentence_of,
)
from releases.requests.impact import measure_request
from releases.requests.impact_view import FlagImpact, RequestImpact
from releases.requests.queries import requests_of
from releases.requests.states import possible_states
from releases.schedules.actions import MIN_AHEAD, may_schedule, set_any_state
from releases.schedules.later import parse_utc

State = ChangeRequest.State


def request_url(request: ChangeRequest) -> str:
    return reverse("change-request", args=[request.project_id, request.pk])


class RequestsPage(ListPage):
    template_name = "releases/requests.html"
    title = "Change requests"
    default_sort = "-number"
    columns = (
        Column("number", "Request", by=("id",)),
        Column("environment", "Environment", by=("environment", "id")),
        Column("state", "State", by=("state", "id")),
        Column("author", "By", by=("author_name", "id")),
        Column("created", "Begun", by=("created_at",)),
    )

    def get_filters(self) -> Sequence[Filter]:
        states = [("", "Any state"), *((state.value, state.value) for state in State)]
        return (Filter("state", "State", options=states),)

    def rows(self, values: dict[str, str]) -> QuerySet[Any]:
        self.project = access_project(self.caller, self.kwargs["project_id"])
        self.csv_name = f"{self.project.pk}-change-requests"
        requests = requests_of(self.project.pk, self.caller).prefetch_related(None)
        if state := values["state"]:
            requests = requests.filter(state=state)
        return requests.annotate(change_count=Count("changes")).order_by()

    def csv_cells(self, row: Any) -> Sequence[Any]:
        return (row.pk, row.environment_id, row.state, row.author_name, row.created_at)

    def crumbs(self) -> Crumbs:
        return project_crumbs(self.project)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        data = super().get_context_data(**kwargs)
        return (
            data
            | {"parent": "projects/base.html"}
            | project_head(self.project, "change-requests", caller=self.caller)
        )

    def curl(self) -> str:
        return curl_for(self.request, "GET", f"{api_path(self.project.pk)}/change-requests")


class ChangeView(NamedTuple):
    """A change as the page shows it: what it does, and a strategy before and after.

    ``differences`` says what its conflict is about; None if what it changes is gone, so that it cannot be kept.
    """

    pk: int
    feature: str
    sentence: str
    conflict: str
    before: Any
    after: Any
    differences: Sequence[str] | None


class Group(NamedTuple):
    """The changes of a flag, or of segments, with the users who change."""

    feature: str
    changes: Sequence[ChangeView]
    impact: FlagImpact | None


class RequestPage(ConsolePage):
    template_name = "releases/request.html"

    def get_title(self) -> str:
        return self.found.title or f"Change request {self.found.pk}"

    def crumbs(self) -> Crumbs:
        requests = ("Change requests", project_url(self.found.project_id, "change-requests"))
        return (*project_crumbs(self.found.project), requests)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        project_id = self.kwargs["project_id"]
        self.found = request = access_request(project_id, path_id(self.kwargs["request_id"]), self.caller)
        changes = list(request.changes.all())
        segments = dict(Segment.objects.values_list("id", "name"))
        is_open = request.state in (*OPEN, State.SCHEDULED)
        reviews = list(request.reviews.all())
        views = [_change_view(request, change, segments, is_open=is_open) for change in changes]
        found = self.impact(request) if is_open and changes else {}
        impact = found.get("impact")
        verdicts = judge(request, impact.document if impact else None) if is_open else []
        return super().get_context_data(
            change_request=request,
            change_count=len(views),
            needed=next((v.approvals for v in verdicts if v.holds), request.required_approvals),
            verdicts=verdicts,
            approver_groups=approver_group_names(project_id, request.environment_id),
            may_configure=any(
                self.caller.can(permission, project=project_id) for permission in POLICY_PERMISSIONS
            ),
            conflicts=sum(bool(view.conflict) for view in views),
            reviews=reviews,
            approvals=sum(review.approved for review in reviews),
            comments=list(request.comments.all()),
            reviewers=list(request.reviewers.order_by("username")),
            steps=(steps := possible_states(request, self.caller)),
            main_step=State.APPLIED if State.APPLIED in steps else next(iter(steps), None),
            may_edit=may_edit(request, self.caller),
            is_open=is_open,
            schedule=getattr(request, "schedule", None),
            schedule_at=self.schedule_at(request),
            stations=_stations(request),
            groups=_groups(views, impact),
            **found,
            **kwargs,
        )

    def impact(self, request: ChangeRequest) -> dict[str, Any]:
        """Who changes now, by flag too, and what has moved since it was approved."""
        try:
            measured = measure_request(request, now=timezone.now())
        except ValidationError as error:
            return {"refusals": [error.message]}
        view = RequestImpact(measured, explain_in([request.environment_id]))
        return {"impact": view, "moved": view.moved_since_approval(request)}

    def schedule_at(self, request: ChangeRequest) -> str:
        """The time in UTC to begin with: that of its schedule, else the next full hour. "" without the permission."""
        if not may_schedule(request, self.caller):
            return ""
        now = timezone.now()
        begin = request.schedule.at if request.state == State.SCHEDULED else now
        if begin <= now:
            begin = (now + MIN_AHEAD).replace(minute=0, second=0) + timedelta(hours=1)
        return f"{begin:%Y-%m-%dT%H:%M:%S}"

    def curl(self) -> str:
        path = f"{api_path(self.found.project_id)}/change-requests/{self.found.pk}"
        return curl_for(self.request, "GET", path)


def _stations(request: ChangeRequest) -> list[tuple[str, datetime | None, bool]]:
    """The states on its way: name, when it came there, and whether it is there now."""
    way = [State.DRAFT, State.IN_REVIEW, State.APPROVED, State.APPLIED]
    if State.SCHEDULED in (request.state, *request.state_times) and hasattr(request, "schedule"):
        way.insert(3, State.SCHEDULED)
    if request.state in (State.REJECTED, State.CANCELLED):
        way = [state for state in way if state in request.state_times] + [State(request.state)]
    reached = way.index(State(request.state))
    times = request.state_times
    return [
        (
            state.value,
            datetime.fromisoformat(times[state]) if index <= reached and state in times else None,
            index == reached,
        )
        for index, state in enumerate(way)
    ]


def _groups(views: Sequence[ChangeView], impact: RequestImpact | None) -> list[Group]:
    measured = impact.flags if impact else {}
    names = dict.fromkeys(view.feature for view in views)
    return [
        Group(name, [view for view in views if view.feature == name], measured.get(name)) for name in names
    ]


def _change_view(
    request: ChangeRequest, change: Change, segments: dict[int, str], *, is_open: bool
) -> ChangeView:
    conflict = find_conflict(request, change) if is_open else ""
    now, differences = change.made_from, None
    if conflict:
        with suppress(NotFound):
            now = read_now(request, change)
            differences = describe_conflict(change, now)
    before, after = _sides(change, now, segments)
    return ChangeView(
        change.pk, change.feature, sentence_of(request, change), conflict, before, after, differences
    )


def _sides(change: Change, now: Any, segments: dict[int, str]) -> tuple[Any, Any]:
    """The strategy as it is and as the change would leave it; None where there is none."""
    if "Strategy" not in change.action or change.action == "reorderStrategy":
        return None, None
    stored = now if isinstance(now, dict) else None
    before = strategy_summary(stored, segments=segments) if stored else None
    if change.action == "deleteStrategy":
        return before, None
    payload = narrow_payload(change, change.made_from)
    wanted = (stored or {}) | {key: value for key, value in payload.items() if value is not None}
    return before, strategy_summary(wanted, segments=segments)


class RequestAction(ActionPage):
    @property
    def target(self) -> tuple[str, int]:
        return self.kwargs["project_id"], path_id(self.kwargs["request_id"])

    def back(self) -> str:
        project_id, number = self.target
        if not ChangeRequest.objects.filter(pk=number).exists():
            return project_url(project_id, "change-requests")
        return reverse("change-request", args=[project_id, number])


DONE = {
    State.IN_REVIEW: "Sent change request {} to review.",
    State.APPROVED: "Approved change request {}.",
    State.REJECTED: "Rejected change request {}.",
    State.APPLIED: "Applied change request {}.",
    State.CANCELLED: "Cancelled change request {}.",
    State.SCHEDULED: "Scheduled change request {}.",
}


class SetState(RequestAction):
    def act(self) -> str:
        project_id, number = self.target
        post = self.request.POST
        text = post.get("comment", "").strip()
        at = parse_utc(post["at"]) if post.get("at") else None
        request = set_any_state(
            project_id, number, post.get("state", ""), text=text, at=at, caller=self.caller
        )
        return DONE[State(self.request.POST["state"])].format(request.pk)


class AddComment(RequestAction):
    def act(self) -> str:
        if not (text := self.request.POST.get("comment", "").strip()):
            raise ValidationError.at("comment", "Write something first.")
        details.comment(*self.target, text, caller=self.caller)
        return "Commented."


class SetTitle(RequestAction):
    def act(self) -> str:
        title = self.request.POST.get("title", "").strip()[:255]
        details.set_title(*self.target, title, caller=self.caller)
        return "Changed the title."


class RemoveChange(RequestAction):
    def act(self) -> str:
        change = path_id(self.request.POST.get("change", ""))
        propose.remove_change(*self.target, change, caller=self.caller)
        return "Removed the change."


class KeepChange(RequestAction):
    def act(self) -> str:
        change = path_id(self.request.POST.get("change", ""))
        propose.keep_change(*self.target, change, caller=self.caller)
        return "Kept the change on top of what is there now."


class Discard(RequestAction):
    def act(self) -> str:
        propose.delete_request(*self.target, caller=self.caller)
        return "Discarded the draft."
