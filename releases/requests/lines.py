"""The lines of a list of change requests: names, conflicts, affected users, and what each request waits for."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import Prefetch, prefetch_related_objects
from django.utils import timezone

from flagadmin.core.errors import ValidationError, list_some, pluralize
from groups.models import Group
from playground.pages.changes import format_share
from projects.models import ProjectEnvironment
from releases.models import Change, ChangeRequest, Review, Schedule
from releases.requests.conflicts import find_conflicting, name_for_changes
from releases.requests.impact import measure_impact
from releases.requests.lapses import find_lapses
from releases.requests.queries import CLOSED, UNDECIDED

State = ChangeRequest.State
MAX_MEASURED = 5
"""Requests in conflict of which a list measures the users."""


class Line(NamedTuple):
    """``users``: the share that changes, measured now for a request in conflict (for the first of a list), else when it
    was last sent or reviewed; "" if unknown.

    ``waits``: what has to happen next; "" for a closed request and for a pending one, which waits until ``at``.
    """

    request: ChangeRequest
    name: str
    conflicts: int
    users: str
    waits: str
    at: datetime | None


def list_lines(requests: Sequence[Any]) -> Iterator[Line]:
    """The lines of requests with ``change_count``, ``changed`` and ``users``, in about ten queries."""
    reviews = Review.objects.select_related("author").defer("impact", "fingerprint")
    prefetch_related_objects(requests, Prefetch("reviews", reviews), "reviewers")
    untitled = Change.objects.filter(request__in=[request.pk for request in requests if not request.title])
    # All the changes of a request may be large.
    first = {
        change.request_id: change for change in untitled.order_by("request_id", "id").distinct("request_id")
    }
    undecided = [request for request in requests if request.state in UNDECIDED]
    changes = list(Change.objects.filter(request__in=undecided).select_related("request"))
    stuck = find_conflicting(changes)
    conflicts = Counter(change.request_id for change in changes if change.pk in stuck)
    lapses, approvers = find_lapses(undecided), _name_approvers(undecided)
    for request in requests:
        given = [each.author_id for each in request.reviews.all() if each.approved and each.pk not in lapses]
        schedule = request.schedule if request.state == State.SCHEDULED else None
        is_pending = schedule is not None and schedule.status == Schedule.Status.PENDING
        yield Line(
            request,
            request.title or name_for_changes(request, first.get(request.pk), request.change_count),
            conflicts[request.pk],
            _say_users(request, list(conflicts)),
            "" if is_pending else _say_waiting(request, given, approvers, is_stuck=request.pk in conflicts),
            schedule.at if schedule and is_pending else None,
        )


def _say_users(request: Any, conflicts: Sequence[int]) -> str:
    """``conflicts``: the ids of the requests in conflict."""
    changed, users = request.changed, request.users
    if request.pk in conflicts and users:  # what it was sent for is no longer there
        if request.pk not in conflicts[:MAX_MEASURED]:
            return ""
        try:
            now = measure_impact(request, now=timezone.now()).document
        except ValidationError:
            return ""
        changed, users = now["changed"], now["users"]
    return format_share(changed, users) if users else ""


def _name_approvers(requests: Iterable[ChangeRequest]) -> dict[tuple[str, str], str]:
    """By project and environment, where only members of groups may approve."""
    links = ProjectEnvironment.objects.filter(project__in={request.project_id for request in requests})
    groups = {(link.project_id, link.environment_id): link.approver_groups for link in links}
    names = dict(Group.objects.filter(pk__in={*chain(*groups.values())}).values_list("pk", "name"))
    return {
        place: f"members of {list_some([names.get(pk, 'a deleted group') for pk in pks], 2)}"
        for place, pks in groups.items()
        if pks
    }


def _say_waiting(
    request: ChangeRequest,
    given: Collection[int | None],
    approvers: Mapping[tuple[str, str], str],
    *,
    is_stuck: bool,
) -> str:
    """``Maria Olsen to resolve a conflict``, ``2 approvals by members of Reviewers``. ``given``: who has approved."""
    author = request.author_full_name
    if request.state in CLOSED:
        return ""
    if request.state == State.DRAFT:
        return f"{author} to send it"
    if is_stuck:
        return f"{author} to resolve a conflict"
    if request.state == State.SCHEDULED:
        return f"{author} to set another time"
    missing = request.required_approvals - len(given)
    if missing <= 0:
        return "Somebody to apply it"
    asked = [user.display_name for user in request.reviewers.all() if user.pk not in given]
    by = list_some(asked, 2) or approvers.get((request.project_id, request.environment_id), "any reviewer")
    return f"{pluralize(missing, 'approval')} by {by}"
