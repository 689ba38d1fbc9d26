"""Begins reviews, and withdraws approvals of what is no longer what a request does."""

from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import read_transaction_time
from flagadmin.core.errors import Conflict, ValidationError
from flagadmin.core.http.timestamps import iso
from flagadmin.core.wording import pluralize
from groups.access import Caller
from releases.models import ChangeRequest
from releases.requests.approvals import count_needed
from releases.requests.drift import find_moved
from releases.requests.events import enter
from releases.requests.impact import measure_impact

State = ChangeRequest.State


def measure(request: ChangeRequest) -> dict[str, Any] | None:
    """None if the changes cannot be made. The request gets what its page shows, to be saved with its state."""
    try:
        impact = measure_impact(request, now=timezone.now())
    except ValidationError:
        return None
    request.summary = impact.summary
    return impact.document


def begin_review(request: ChangeRequest, caller: Caller) -> None:
    """It is approved at once where nobody needs to approve it."""
    request.required_approvals = count_needed(request, request.impact)
    enter(request, State.IN_REVIEW, EventType.CHANGE_REQUEST_SENT_TO_REVIEW, caller)
    if request.required_approvals == 0:
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)


def review_again(request: ChangeRequest, caller: Caller) -> None:
    """A request that has been sent goes back into review, without what was decided."""
    if request.state == State.DRAFT:
        return
    request.reviews.all().delete()
    request.impact, request.moved = measure(request), None
    begin_review(request, caller)


def withdraw_if_moved(request: ChangeRequest, caller: Caller, *, done: str = "applied") -> Conflict | None:
    """Withdraws the approvals of a request that no longer changes what was approved, or asks for more of them.

    Returns why, else None.
    """
    impact = measure(request)
    if not (reasons := note_moved(request, impact)):
        return _ask_for_more(request, impact, caller, done)
    request.impact = impact
    begin_review(request, caller)
    return Conflict(
        f"Change request {request.pk} was not {done}, and its approvals are withdrawn, because it no longer changes "
        f"what was approved. {' '.join(reasons)}"
    )


def find_refusal(request: ChangeRequest) -> str:
    """Explains why `withdraw_if_moved` would withdraw its approvals, "" if it would not."""
    return explain_refusal(request, measure(request))


def explain_refusal(request: ChangeRequest, impact: dict[str, Any] | None) -> str:
    """Explains why a request with this impact is not what was approved, or needs more approvals; "" if it is."""
    if reasons := find_moved(request, impact)[1]:
        return f"It no longer changes what was approved. {' '.join(reasons)}"
    number, needed = count_approvals(request), count_needed(request, impact)
    return "" if number >= needed else f"It needs {pluralize(needed, 'approval')} now and has {number}."


def _ask_for_more(
    request: ChangeRequest, impact: dict[str, Any] | None, caller: Caller, done: str
) -> Conflict | None:
    """Has a request reviewed further that another rule holds for now. Returns why, else None."""
    number, needed = count_approvals(request), count_needed(request, impact)
    if number >= needed:
        return None
    request.impact = impact
    begin_review(request, caller)
    return Conflict(
        f"Change request {request.pk} was not {done}: it needs {pluralize(needed, 'approval')} now and has {number}."
    )


def note_moved(request: ChangeRequest, impact: dict[str, Any] | None) -> list[str]:
    """Withdraws the approvals if they were for another effect, and notes why. Returns the reasons."""
    approved, reasons = find_moved(request, impact)
    if reasons:
        reviews = list(request.reviews.filter(approved=True))
        request.moved = {
            "at": iso(read_transaction_time()),
            "approvedAt": iso(reviews[0].created_at) if reviews else request.state_times[State.IN_REVIEW],
            "before": approved,
            "after": impact,
            "reasons": reasons,
            "withdrawn": [review.author_name for review in reviews],
        }
        request.reviews.all().delete()
    return reasons


def has_enough(request: ChangeRequest) -> bool:
    """Whether a request in review needs no more approvals: fewer, by now, than when the last one was given."""
    is_in_review = request.state == State.IN_REVIEW
    return is_in_review and count_approvals(request) >= count_needed(request, request.impact)


def approve_if_enough(request: ChangeRequest, caller: Caller) -> None:
    if has_enough(request):
        request.required_approvals = count_needed(request, request.impact)
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)


def count_approvals(request: ChangeRequest) -> int:
    return request.reviews.filter(approved=True).count()
