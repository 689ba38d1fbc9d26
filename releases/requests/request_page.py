"""/projects/ID/change-requests/ID/: the changes of a request, the affected users, and what it waits for."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import prefetch_related_objects
from django.utils import timezone

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import NotFound, ValidationError, pluralize
from flagadmin.core.http.fields import path_id
from flagadmin.core.lists.pages import curl_for
from groups.console import Breadcrumbs, ConsolePage
from groups.models import User
from playground.pages.lines import explain_in
from projects.console import api_path, project_url
from projects.models import Segment
from projects.projects.environments import POLICY_PERMISSIONS
from releases.changes import KINDS
from releases.models import Change, ChangeRequest
from releases.models.requests import full_name
from releases.plans.queries import TouchedPlan, find_touched_plans
from releases.requests.approvals import OPEN, access_request, judge, list_proposal, may_edit
from releases.requests.approvers import approver_group_names, list_approvers
from releases.requests.conflicts import (
    find_conflicts,
    name_request,
    read_now,
    say_change,
)
from releases.requests.impact import measure_impact
from releases.requests.impact_view import FlagImpact, RequestImpact
from releases.requests.lapses import find_author_tie, find_lapses, find_origins
from releases.requests.pages import REQUESTS
from releases.requests.review import hash_effect
from releases.requests.states import list_possible_states
from releases.schedules.actions import MIN_AHEAD, may_schedule


class ChangeView(NamedTuple):
    """A change for the page: its action, and a strategy, variants or a segment's conditions before and after.

    ``differences`` describes its conflict; None if the changed object is deleted, so that the change cannot be kept.
    """

    pk: int
    feature: str
    sentence: str
    conflict: str
    before: Any
    after: Any
    differences: Sequence[str] | None


class Group(NamedTuple):
    """The changes of a flag, or of segments, with the affected users.

    ``touched``: the release plans of the flag that applying them does not take into account.
    """

    feature: str
    changes: Sequence[ChangeView]
    impact: FlagImpact | None
    touched: Sequence[TouchedPlan] = ()


def group_changes(
    request: ChangeRequest, views: Sequence[ChangeView], impact: RequestImpact | None
) -> list[Group]:
    """By flag. The plans that are touched are those of requests that may still be applied."""
    measured = impact.flags if impact else {}
    made: dict[str, list[Change]] = {view.feature: [] for view in views}
    for change in request.changes.all():
        made[change.feature].append(change)
    may_be_applied = request.state in (*OPEN, ChangeRequest.State.SCHEDULED)
    return [
        Group(
            name,
            [view for view in views if view.feature == name],
            measured.get(name),
            list(_find_touched(request, name, made[name])) if name and may_be_applied else [],
        )
        for name in made
    ]


def _find_touched(request: ChangeRequest, flag: str, changes: Sequence[Change]) -> Iterator[TouchedPlan]:
    if any(KINDS[change.action].is_later for change in changes):  # they are about the plan
        return iter(())
    last = changes[-1]
    what = KINDS[last.action].touches_plans(last.payload)
    return find_touched_plans([flag], request.environment_id, what)


def view_change(
    request: ChangeRequest, change: Change, segments: dict[int, str], conflict: str
) -> ChangeView:
    kind, then, now, differences = KINDS[change.action], change.made_from, change.made_from, None
    if conflict:
        with suppress(NotFound):
            now = read_now(request, change)
            differences = kind.describe_conflict(change.payload, then, now)
    before, after = kind.show(change.payload, then, now, segments)
    return ChangeView(
        change.pk, change.feature, say_change(request, change), conflict, before, after, differences
    )


State = ChangeRequest.State
_EVENTS = {
    E.CHANGE_REQUEST_SENT_TO_REVIEW: "sent it for review",
    E.CHANGE_REQUEST_SCHEDULED: "scheduled it",
    E.CHANGE_REQUEST_UNSCHEDULED: "cancelled its schedule",
    E.CHANGE_REQUEST_APPLIED: "applied it",
    E.CHANGE_REQUEST_APPLIED_AS_SCHEDULED: "applied it, as scheduled",
    E.CHANGE_REQUEST_CANCELLED: "cancelled it",
}


class Station(NamedTuple):
    """A state of a request. ``at``: when it was reached; ``note``: what it waits for."""

    name: str
    at: datetime | None
    is_now: bool
    note: str


class Entry(NamedTuple):
    """A user's action or comment. ``about`` is a sentence without its subject."""

    name: str
    about: str
    at: datetime
    text: str = ""


def list_stations(request: ChangeRequest, note: str) -> list[Station]:
    """The states on its way. ``note`` belongs to the present one."""
    way = [State.DRAFT, State.IN_REVIEW, State.APPROVED, State.APPLIED]
    times = request.state_times
    if State.DRAFT not in times:
        way.remove(State.DRAFT)
    if State.SCHEDULED in (request.state, *times) and hasattr(request, "schedule"):
        way.insert(-1, State.SCHEDULED)
    if request.state in (State.REJECTED, State.CANCELLED):
        way = [state for state in way if state in times] + [State(request.state)]
    reached = way.index(State(request.state))
    return [
        Station(
            state.value,
            datetime.fromisoformat(times[state]) if index <= reached and state in times else None,
            index == reached,
            note if index == reached else "",
        )
        for index, state in enumerate(way)
    ]


def list_activity(request: ChangeRequest) -> list[Entry]:
    """The entries, oldest first."""
    return sorted([*_comments(request), *_reviews(request), *_steps(request)], key=lambda entry: entry.at)


def _comments(request: ChangeRequest) -> Iterator[Entry]:
    for comment in request.comments.all():
        yield Entry(comment.author_full_name, "commented", comment.created_at, comment.text)


def _reviews(request: ChangeRequest) -> Iterator[Entry]:
    for review in request.reviews.all():
        impact, about = review.impact, "approved it" if review.approved else "rejected it"
        if impact:
            about += f" with {impact['changed']:,} of {impact['users']:,} users changing"
        yield Entry(review.author_full_name, about, review.created_at)


def _steps(request: ChangeRequest) -> Iterator[Entry]:
    """Yields the users who moved it to its states. Found by their times, which need no extra index."""
    events = AuditEvent.objects.filter(
        type__in=list(_EVENTS), created_at__in=list(request.state_times.values()), subject=f"{request.pk}"
    )
    people = User.objects.in_bulk({event.actor_id for event in events if event.actor_id})
    for event in sorted(events, key=lambda event: event.pk):
        name = full_name(people.get(event.actor_id or 0), event.actor_name)
        yield Entry(name, _EVENTS[E(event.type)], event.created_at)


def explain_waiting(
    request: ChangeRequest, *, approvals: int, needed: int, conflicts: int, possible: Sequence[State]
) -> str:
    """Why it cannot be scheduled or applied yet; "" if it can or has ended."""
    if request.state not in (State.IN_REVIEW, State.APPROVED, State.SCHEDULED):
        return ""
    is_in_review = request.state == State.IN_REVIEW
    if not is_in_review and needed > approvals:
        return f"It needs {pluralize(needed - approvals, 'more approval')} by now."
    missing = []
    if is_in_review and needed > approvals:
        missing.append(f"Needs {pluralize(needed - approvals, 'more approval')}.")
    if conflicts:
        missing.append(f"Resolve the conflict{'s' if conflicts > 1 else ''} first.")
    if missing:
        return " ".join(missing)
    return "" if State.APPLIED in possible else "You may not apply it: that needs the permission."


MAIN_STEPS = (State.APPLIED, State.APPROVED, State.IN_REVIEW)


class RequestPage(ConsolePage):
    template_name = "releases/request.html"

    def get_title(self) -> str:
        return name_request(self.change_request)

    def get_breadcrumbs(self) -> Breadcrumbs:
        project = self.change_request.project
        return (REQUESTS, (project.name, project_url(project.pk, "change-requests")))

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        number = path_id(self.kwargs["request_id"], "Change request")
        self.change_request = request = access_request(self.kwargs["project_id"], number, self.caller)
        prefetch_related_objects([request], "reviews__author", "comments__author")
        steps = list_possible_states(request, self.caller)
        return super().get_context_data(
            change_request=request,
            proposal=hash_document(list_proposal(request)),
            # Before measuring: nobody may approve an effect newer than the shown one.
            effect=hash_effect(request),
            steps=steps,
            may_edit=may_edit(request, self.caller),
            approvers=self.list_askable(request),
            may_revert=request.state == State.APPLIED,
            schedule=getattr(request, "schedule", None),
            schedule_at=self.schedule_at(request),
            activity=list_activity(request),
            approver_groups=approver_group_names(request.project_id, request.environment_id),
            may_configure=self.may_configure(request),
            **self.effects(request, steps),
            **kwargs,
        )

    def list_askable(self, request: ChangeRequest) -> list[User]:
        """The people who can be asked for a review, if the caller may ask."""
        if not may_edit(request, self.caller):
            return []
        asked = set(request.reviewers.values_list("pk", flat=True))
        people = list_approvers(request.project_id, request.environment_id)
        unasked = [user for user in people if user.pk not in asked]
        return [user for user in unasked if self.caller.is_admin or user.pk != request.author_id]

    def effects(self, request: ChangeRequest, steps: list[State]) -> dict[str, Any]:
        """Its changes, the affected users, the matching rule, and what it waits for."""
        changes = list(request.changes.all())
        segments = dict(Segment.objects.values_list("id", "name"))
        is_open = request.state in (*OPEN, State.SCHEDULED)
        conflicts = find_conflicts(request, changes) if is_open else [""] * len(changes)
        views = [
            view_change(request, change, segments, conflict)
            for change, conflict in zip(changes, conflicts, strict=True)
        ]
        compared = self.impact(request) if is_open and changes else {}
        impact = compared.get("impact")
        verdicts = judge(request, impact.document if impact else None) if is_open else []
        needed = next(
            (v.approvals for v in verdicts if v.holds), 0 if is_open else request.required_approvals
        )
        reviews = list(request.reviews.all())
        reviewers = list(request.reviewers.exclude(review__request=request).order_by("username"))
        lapses, origins = find_lapses([request]) if is_open else {}, find_origins([request])
        approvals = sum(review.approved and review.pk not in lapses for review in reviews)
        waits = {"approvals": approvals, "needed": needed, "conflicts": sum(map(bool, conflicts))}
        return {
            **waits,
            **compared,
            "is_open": is_open,
            # Conflicts come first: the page must not suggest approving or applying a conflicting request.
            "main_step": None
            if any(conflicts)
            else next((step for step in MAIN_STEPS if step in steps), None),
            "reviews": [
                (review, lapses.get(review.pk, ""), origins.get(review.pk, "")) for review in reviews
            ],
            "own": find_author_tie(request, self.caller) if is_open else "",
            "reviewers": reviewers,
            "listed": {review.author_full_name for review in reviews}
            | {user.display_name for user in reviewers},
            "verdicts": verdicts,
            "groups": group_changes(request, views, impact),
            "change_count": len(views),
            "stations": list_stations(request, describe_progress(request, **waits)),
            "waiting": explain_waiting(request, possible=steps, **waits),
        }

    def impact(self, request: ChangeRequest) -> dict[str, Any]:
        """The affected users now, also by flag, and the changes since approval."""
        try:
            impact = measure_impact(request, now=timezone.now())
        except ValidationError as error:
            return {"refusals": [error.message]}
        view = RequestImpact(impact, explain_in([request.environment_id]))
        return {"impact": view, "moved": view.moved_since_approval(request)}

    def schedule_at(self, request: ChangeRequest) -> str:
        """The initial time in UTC: its schedule's, else the next full hour. "" without the permission."""
        if not may_schedule(request, self.caller):
            return ""
        now = timezone.now()
        begin = request.schedule.at if request.state == State.SCHEDULED else now
        if begin <= now:
            begin = (now + MIN_AHEAD).replace(minute=0, second=0) + timedelta(hours=1)
        return f"{begin:%Y-%m-%dT%H:%M:%S}"

    def may_configure(self, request: ChangeRequest) -> bool:
        here = {"project": request.project_id}
        return any(self.caller.can(permission, **here) for permission in POLICY_PERMISSIONS)

    def get_curl(self) -> str:
        path = f"{api_path(self.change_request.project_id)}/change-requests/{self.change_request.pk}"
        return curl_for(self.request, "GET", path)


def describe_progress(request: ChangeRequest, *, approvals: int, needed: int, conflicts: int) -> str:
    """``1 of 2 approvals · 1 conflict``"""
    if request.state == State.IN_REVIEW and needed:
        parts = [f"{approvals} of {pluralize(needed, 'approval')}"]
    else:
        parts = []
    return " · ".join([*parts, *([pluralize(conflicts, "conflict")] if conflicts else [])])
