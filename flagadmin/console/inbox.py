"""The start page's inbox: change requests that wait for the caller, and scheduled changes and release plans."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.urls import reverse

from groups.access import Caller
from playground.pages.changes import format_share
from releases.models import ChangeRequest
from releases.plans.queries import running_plans
from releases.plans.view import PlanView
from releases.requests.conflicts import name_request
from releases.requests.queries import visible_requests
from releases.requests.waiting import read_drafts, scheduled_next, waiting_for

MAX_WAITING, MAX_DRAFTS, MAX_SCHEDULED, MAX_RUNNING = 5, 5, 5, 5


class Waiting(NamedTuple):
    """A request with what its row says. ``share``: of the users who change, "" if that is not known."""

    request: ChangeRequest
    url: str
    title: str
    change_count: int
    share: str
    approvals: int


def read_inbox(caller: Caller) -> dict[str, Any]:
    """Reads the start page's data. About ten queries, and one or two for each environment with requests in review."""
    waiting = waiting_for(caller, visible_requests(caller))
    drafts = read_drafts(caller)
    return {
        "waiting": _make_rows(waiting.select_related("project", "author")[:MAX_WAITING]),
        "waiting_count": waiting.count(),
        "drafts": _make_rows(drafts.select_related("project", "author")[:MAX_DRAFTS]),
        "scheduled": _make_rows(
            scheduled_next(caller).select_related("project", "author", "schedule")[:MAX_SCHEDULED]
        ),
    }


def read_running_plans(caller: Caller) -> list[PlanView]:
    """Reads the plans, paused ones first, then those that take their next step soonest. Two queries."""
    plans = running_plans(caller).select_related("flag__project", "active").prefetch_related("milestones")
    return [PlanView(plan, caller) for plan in plans.order_by("state", "look_at", "pk")[:MAX_RUNNING]]


def _make_rows(requests: Iterable[ChangeRequest]) -> list[Waiting]:
    return [_make_row(request) for request in requests]


def _make_row(request: ChangeRequest) -> Waiting:
    changes, impact = list(request.changes.all()), request.impact
    return Waiting(
        request,
        reverse("change-request", args=[request.project_id, request.pk]),
        name_request(request),
        len(changes),
        format_share(impact["changed"], impact["users"]) if impact else "",
        sum(review.approved for review in request.reviews.all()),
    )
