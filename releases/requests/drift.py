"""Compares the approved effect with the present one: only approved effects are applied.

An approval covers a fingerprint of everything that determines the results of the touched flags and their dependents
after applying the request. The figures of affected users are only shown beside it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import hash_document
from flagadmin.core.errors import ValidationError
from playground.comparison.compare import COUNTED
from projects.fingerprint import (
    UNFORESEEN,
    Fingerprint,
    drop_switched,
    explain_difference,
    list_segments,
    take_fingerprint,
)
from projects.models import Segment
from releases.changes import KINDS
from releases.models import Change, ChangeRequest
from releases.plans.queries import UNFINISHED
from releases.plans.steps import foresee_milestone
from releases.requests.impact import list_touched_flags, predict_state
from releases.safeguards.queries import describe_reaction
from releases.targets import Predicted

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
        return next(filter(None, (_explain(approved, now) for approved in approvals)), [])
    sent = request.fingerprint
    return [] if sent is None else _explain(*drop_switched(sent, now))


def _explain(approved: Fingerprint | None, now: Fingerprint) -> list[str]:
    if approved is None:
        return [BEFORE_UPGRADE]
    if approved == UNFORESEEN:
        return [NOT_FORESEEN]
    if approved == now:
        return []
    ids = list_segments(approved, now)
    return explain_difference(approved, now, Segment.objects.names(ids) if ids else None)


def find_approved_impact(request: ChangeRequest) -> Document | None:
    """The affected users when it was first approved or, without approvals, sent."""
    approvals = [review.impact for review in request.reviews.all() if review.approved]
    impact: Document | None = [*approvals, request.impact][0]
    return impact
