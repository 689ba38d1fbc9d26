"""Begins reviews, and withdraws approvals of outdated effects.

Compares the approved effect with the present one: only approved effects are applied.

An approval covers a fingerprint of everything that determines the results of the touched flags and their dependents
after applying the request. The figures of affected users are only shown beside it.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import timezone

from flagadmin.core.audit.record import AuditEvent, EventType, read_transaction_time
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, hash_document
from flagadmin.core.errors import Conflict, EditConflict, ValidationError, pluralize
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import User
from playground.comparison.compare import COUNTED
from projects.fingerprint import (
    UNFORESEEN,
    Fingerprint,
    drop_switched,
    explain_difference,
    list_segments,
    take_fingerprint,
)
from projects.models import Segment, Strategy
from releases.changes import KINDS
from releases.models import Change, ChangeRequest
from releases.models.requests import full_name
from releases.plans.queries import UNFINISHED
from releases.plans.steps import foresee_milestone
from releases.requests.approvals import count_needed, list_proposal
from releases.requests.details import enter
from releases.requests.impact import (
    add_near,
    list_named_segments,
    list_planned_segments,
    list_touched_flags,
    measure_impact,
    predict_state,
)
from releases.requests.lapses import count_approvals, explain_lapses
from releases.safeguards.queries import describe_reaction
from releases.targets import Predicted

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


BEFORE_UPGRADE = "It was approved before flagadmin kept what exactly was approved."
NOT_FORESEEN = "What it changes could not be foreseen when it was approved."


class Figure(NamedTuple):
    """A line of the comparison: at approval, and now."""

    name: str
    before: str
    after: str

    @property
    def moved(self) -> bool:
        return self.before != self.after


def compare_impacts(before: Document, after: Document) -> list[Figure]:
    old, new = before["counts"], after["counts"]
    lines = [_users("Users who change", before["changed"], after["changed"], before, after)]
    lines += [
        _users(kind.words, old.get(kind.value, 0), new.get(kind.value, 0), before, after)
        for kind in COUNTED
        if kind.value in old or kind.value in new
    ]
    old_own, new_own = before.get("own"), after.get("own")
    if old_own and new_own and old_own["by"] == new_own["by"]:
        name = f"Users in the file of {new_own['by']}"
        lines.append(_users(name, old_own["changed"], new_own["changed"], old_own, new_own))
    lines.append(Figure("Saved contexts", _names(before), _names(after)))
    broken = before["brokenExpectations"], after["brokenExpectations"]
    lines.append(Figure("Expectations broken", f"{broken[0]}", f"{broken[1]}"))
    return lines


def _users(name: str, old: int, new: int, before: Document, after: Document) -> Figure:
    then, now = 100 * old / max(1, before["users"]), 100 * new / max(1, after["users"])
    return Figure(name, f"{then:.3g} %", f"{now:.3g} %")


def _names(impact: Document) -> str:
    return ", ".join(saved["name"] for saved in impact["savedContexts"]) or "none"


def foresee_fingerprint(request: ChangeRequest) -> Fingerprint:
    """The fingerprint of the result of applying the request now. UNFORESEEN if its changes cannot be made."""
    changes = list(request.changes.all())
    try:
        state = predict_state(request, changes)
    except ValidationError:
        return UNFORESEEN
    return take_request_fingerprint(request, changes, state)


def take_request_fingerprint(
    request: ChangeRequest, changes: Sequence[Change], state: Predicted
) -> Fingerprint:
    """The fingerprint of the state after these changes, with each milestone that may follow."""
    segments = [change.payload["id"] for change in changes if KINDS[change.action].of_segment]
    touched = list_touched_flags(request, changes)
    return take_fingerprint(state.definitions(), touched, segments) | dict(_foresee_plans(changes, state))


def _foresee_plans(changes: Sequence[Change], state: Predicted) -> Iterator[tuple[str, str]]:
    """Yields a part for each milestone of the plans in the changes, and one for the safeguards of each plan."""
    for name in sorted({change.feature for change in changes if KINDS[change.action].is_later}):
        for plan in (each for each in state.plans(name) if each.state in UNFINISHED):
            for number, milestone in enumerate(plan.milestones, 1):
                part = f"milestone {number} ({milestone.name}) of {name}"
                yield part, hash_document(foresee_milestone(state, name, plan, milestone))
            if plan.safeguards:
                part = f"safeguards {name}, release plan {plan.name}"
                yield part, hash_document([describe_reaction(each) for each in plan.safeguards])


def find_moved(request: ChangeRequest, now: Fingerprint) -> list[str]:
    """Why the present effect is not the approved one, in sentences; [] if it is.

    A request that needs no approvals is compared with its author's submission, except for flags that others have
    switched since. If the changes cannot be made now, applying gives the reason.
    """
    if now == UNFORESEEN:
        return []
    if approvals := [review.fingerprint for review in request.reviews.all() if review.approved]:
        return next(filter(None, (explain_drift(approved, now) for approved in approvals)), [])
    sent = request.fingerprint
    return [] if sent is None else explain_drift(*drop_switched(sent, now))


def explain_drift(approved: Fingerprint | None, now: Fingerprint) -> list[str]:
    """Why the effect of a request, a schedule or a plan's step is not the approved one, in sentences; [] if it is."""
    if approved is None:
        return [BEFORE_UPGRADE]
    if approved == now:
        return []
    if approved == UNFORESEEN:
        return [NOT_FORESEEN]
    ids = list_segments(approved, now)
    return explain_difference(approved, now, Segment.objects.names(ids) if ids else None)


def find_approved_impact(request: ChangeRequest) -> Document | None:
    """The affected users when it was first approved or, without approvals, sent."""
    approvals = [review.impact for review in request.reviews.all() if review.approved]
    impact: Document | None = [*approvals, request.impact][0]
    return impact
