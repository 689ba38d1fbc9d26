"""/projects/ID/change-requests/ID/: the changes of a request, the affected users, and what it waits for."""

from datetime import timedelta
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils import timezone

from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.parameters import path_id
from flagadmin.core.lists.pages import curl_for
from flagadmin.core.wording import pluralize
from groups.console import Breadcrumbs, ConsolePage
from groups.models import User
from playground.pages.lines import explain_in
from projects.console import api_path, get_project_breadcrumbs, project_url
from projects.models import Segment
from projects.projects.environments import POLICY_PERMISSIONS
from releases.models import ChangeRequest
from releases.requests.access import OPEN, access_request, list_proposal, may_edit
from releases.requests.approvals import judge
from releases.requests.approvers import approver_group_names, list_approvers
from releases.requests.change_view import group_changes, view_change
from releases.requests.conflicts import find_conflicts, name_request
from releases.requests.impact import measure_impact
from releases.requests.impact_view import RequestImpact
from releases.requests.lapses import find_author_tie, find_lapses, find_origins
from releases.requests.review import hash_effect
from releases.requests.states import list_possible_states
from releases.requests.timeline import explain_waiting, list_activity, list_stations
from releases.schedules.actions import MIN_AHEAD, may_schedule

State = ChangeRequest.State
MAIN_STEPS = (State.APPLIED, State.APPROVED, State.IN_REVIEW)


class RequestPage(ConsolePage):
    template_name = "releases/request.html"

    def get_title(self) -> str:
        return name_request(self.change_request)

    def get_breadcrumbs(self) -> Breadcrumbs:
        requests = ("Change requests", project_url(self.change_request.project_id, "change-requests"))
        return (*get_project_breadcrumbs(self.change_request.project), requests)

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
