"""Begins reviews, and withdraws approvals of outdated effects."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.record import AuditEvent, EventType, read_transaction_time
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.edit_conflicts import Expected, hash_document
from flagadmin.core.errors import Conflict, EditConflict, ValidationError
from flagadmin.core.http.responses import iso
from flagadmin.core.wording import pluralize
from groups.access import Caller
from groups.models import User
from projects.fingerprint import Fingerprint
from projects.models import Strategy
from releases.models import ChangeRequest
from releases.models.requests import full_name
from releases.requests.access import list_proposal
from releases.requests.approvals import count_needed
from releases.requests.drift import find_approved_impact, find_moved, foresee_fingerprint
from releases.requests.events import enter
from releases.requests.impact import (
    add_near,
    list_named_segments,
    list_planned_segments,
    list_touched_flags,
    measure_impact,
)
from releases.requests.lapses import count_approvals, explain_lapses

MAX_CAUSES = 3
CHANGES = (
    "^(feature-(environment|strategy|dependency|archived|revived|imported|promoted|reverted|updated)|segment-"
    "|default-strategy|project-updated|release-plan|milestone)"
)
"""Types of events that may change what flags return."""


DEFAULTS = (EventType.DEFAULT_STRATEGY_UPDATED, EventType.PROJECT_UPDATED)
"""Types of events that may change the strategy that a flag gets when it is turned on."""


class Cause(NamedTuple):
    """An action of a user, in a sentence without its subject."""

    name: str
    about: str
    at: datetime

    @property
    def sentence(self) -> str:
        return (
            f"{self.name} {self.about} at {self.at.astimezone(UTC):%H:%M} UTC on {self.at.day} {self.at:%b}."
        )


def find_causes(request: ChangeRequest, since: datetime) -> list[Cause]:
    """The latest changes of its flags, those near them, their segments and the project's defaults. Six queries."""
    changes = list(request.changes.all())
    segments = {*list_named_segments(changes), *list_planned_segments(request, changes)}
    names = list_touched_flags(request, changes)
    return find_causes_near(request.project_id, request.environment_id, names, segments, since)


def find_causes_near(
    project: str, environment: str, flags: Collection[str], segments: Collection[int], since: datetime
) -> list[Cause]:
    """The latest changes that affect these flags' results, with these segments and those that they use."""
    names = add_near(flags)
    here = Q(environment=environment) | Q(environment=None)
    rows = Strategy.objects.filter(flag__name__in=names, environment=environment)
    used = {key for key in rows.values_list("segments", flat=True).distinct() if key is not None}
    changed = Q(here, feature__in=names)
    changed |= Q(type=EventType.SEGMENT_UPDATED, after__id__in=list(used.union(segments)))
    changed |= Q(here, project=project, type__in=DEFAULTS)
    events = AuditEvent.objects.filter(changed, created_at__gt=since, type__regex=CHANGES)
    latest = list(events.newest_first()[:MAX_CAUSES])
    people = User.objects.in_bulk({event.actor_id for event in latest if event.actor_id})
    return [
        Cause(
            full_name(people.get(event.actor_id or 0), event.actor_name),
            make_sentence(event),
            event.created_at,
        )
        for event in latest
    ]


def explain_causes(request: ChangeRequest) -> list[str]:
    """A sentence for each change since it was first approved or, without approvals, sent: author, action and time."""
    times = [review.created_at for review in request.reviews.all() if review.approved]
    sent = request.state_times.get(ChangeRequest.State.IN_REVIEW)
    since = min(times, default=datetime.fromisoformat(sent) if sent else request.created_at)
    return [cause.sentence for cause in find_causes(request, since)]


State = ChangeRequest.State


def measure(request: ChangeRequest) -> dict[str, Any] | None:
    """The impact; None if the changes cannot be made. Sets the request's summary, to be saved with its state."""
    try:
        impact = measure_impact(request, now=timezone.now())
    except ValidationError:
        return None
    request.summary = impact.summary
    return impact.document


def hash_effect(request: ChangeRequest) -> str:
    """The version of the request's present result, while it can be approved; "" else."""
    may_be_approved = request.state == State.IN_REVIEW or has_lapsed(request)
    return hash_document(foresee_fingerprint(request)) if may_be_approved else ""


def check_effect(request: ChangeRequest, now: Fingerprint, expected: Expected) -> None:
    """Raises EditConflict if the present effect is none of those that the reviewer has read."""
    if expected is None or hash_document(now) in expected:
        return
    message = f"Change request {request.pk} was not approved: its effect has changed since you opened it."
    sentences = [message, *explain_causes(request), "Read what it changes now."]
    raise EditConflict(list_proposal(request), " ".join(sentences))


def begin_review(request: ChangeRequest, caller: Caller) -> None:
    """Begins the review. The request is approved at once if it needs no approval."""
    request.required_approvals = count_needed(request, request.impact)
    enter(request, State.IN_REVIEW, EventType.CHANGE_REQUEST_SENT_TO_REVIEW, caller)
    if request.required_approvals == 0:
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)


def review_again(request: ChangeRequest, caller: Caller) -> None:
    """Returns a sent request to review, without its decisions."""
    if request.state == State.DRAFT:
        return
    request.reviews.all().delete()
    request.impact, request.moved = measure(request), None
    request.fingerprint = foresee_fingerprint(request)
    begin_review(request, caller)


def withdraw_if_moved(request: ChangeRequest, caller: Caller, *, done: str = "applied") -> Conflict | None:
    """Withdraws approvals if the result is no longer the approved one, or requires more approvals.

    Returns the reason, else None.
    """
    impact, fingerprint = measure(request), foresee_fingerprint(request)
    if not (reasons := note_moved(request, impact, fingerprint)):
        return _ask_for_more(request, impact, caller, done)
    request.impact, request.fingerprint = impact, fingerprint
    begin_review(request, caller)
    return Conflict(
        f"Change request {request.pk} was not {done}, and its approvals are withdrawn, because it no longer changes "
        f"what was approved. {' '.join(reasons)}"
    )


def find_refusal(request: ChangeRequest) -> str:
    """Why `withdraw_if_moved` would withdraw its approvals; "" if it would not."""
    return explain_refusal(request, measure(request), foresee_fingerprint(request))


def explain_refusal(request: ChangeRequest, impact: dict[str, Any] | None, fingerprint: Fingerprint) -> str:
    """Why a request with this effect is not as approved, or needs more approvals; "" if neither."""
    if reasons := find_moved(request, fingerprint):
        reasons += explain_causes(request)
        return f"It no longer changes what was approved. {' '.join(reasons)}"
    number, needed = count_approvals(request), count_needed(request, impact)
    return "" if number >= needed else f"It {_say_missing(request, needed, number)}"


def _ask_for_more(
    request: ChangeRequest, impact: dict[str, Any] | None, caller: Caller, done: str
) -> Conflict | None:
    """Continues the review of a request that now falls under another rule. Returns the reason, else None."""
    number, needed = count_approvals(request), count_needed(request, impact)
    if number >= needed:
        return None
    request.impact = impact
    begin_review(request, caller)
    return Conflict(f"Change request {request.pk} was not {done}: it {_say_missing(request, needed, number)}")


def _say_missing(request: ChangeRequest, needed: int, number: int) -> str:
    return f"needs {pluralize(needed, 'approval')} now and has {number}. {explain_lapses(request)}".rstrip()


def note_moved(request: ChangeRequest, impact: dict[str, Any] | None, fingerprint: Fingerprint) -> list[str]:
    """Withdraws the approvals if they were for another effect, and records the reason.

    Returns sentences about the changes and their authors.
    """
    reasons = find_moved(request, fingerprint)
    causes = explain_causes(request) if reasons else []
    if reasons:
        reviews = list(request.reviews.filter(approved=True))
        request.moved = {
            "at": iso(read_transaction_time()),
            "approvedAt": iso(reviews[0].created_at) if reviews else request.state_times[State.IN_REVIEW],
            "before": find_approved_impact(request),
            "after": impact,
            "reasons": reasons,
            "causes": causes,
            "withdrawn": [review.author_name for review in reviews],
        }
        request.reviews.all().delete()
    return reasons + causes


def has_enough(request: ChangeRequest) -> bool:
    """Whether a request in review needs no more approvals, because fewer are required than at the last one."""
    is_in_review = request.state == State.IN_REVIEW
    return is_in_review and count_approvals(request) >= count_needed(request, request.impact)


def has_lapsed(request: ChangeRequest) -> bool:
    """Whether an approved request has too few approvals by now that count."""
    return request.state == State.APPROVED and count_approvals(request) < request.required_approvals


def approve_if_enough(request: ChangeRequest, caller: Caller) -> None:
    if has_enough(request):
        request.required_approvals = count_needed(request, request.impact)
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)
