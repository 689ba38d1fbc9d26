"""The timeline of a request for its page: past and future states, actions and comments."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.wording import pluralize
from groups.models import User
from releases.models import ChangeRequest
from releases.models.requests import full_name

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
