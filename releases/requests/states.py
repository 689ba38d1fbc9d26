"""Moves requests through their states.

Each step locks the request's row, so that two people who apply it at once apply it only once.
"""

from collections.abc import Callable
from functools import partial

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts import Expected
from flagadmin.core.errors import Conflict, InvalidOperation, NoAccess, ValidationError
from groups.access import Caller
from releases.models import ChangeRequest, Review
from releases.requests.apply import check_conflicts, check_may_apply, make_changes_as, may_apply
from releases.requests.approvals import (
    OPEN,
    access_request_for_update,
    check_author,
    check_may_propose,
    check_state,
    count_needed,
    is_author,
)
from releases.requests.approvers import check_may_approve, may_approve
from releases.requests.details import add_comment, enter, record_event
from releases.requests.lapses import count_approvals, find_author_tie, is_program
from releases.requests.queries import UNDECIDED, by
from releases.requests.review import (
    approve_if_enough,
    begin_review,
    check_effect,
    foresee_fingerprint,
    has_enough,
    has_lapsed,
    measure,
    note_moved,
    withdraw_if_moved,
)

State = ChangeRequest.State


def set_state(
    project_id: str,
    request_id: int,
    state: str,
    *,
    text: str = "",
    expected: Expected = None,
    caller: Caller,
) -> ChangeRequest:
    """Sends, approves, rejects, applies or cancels a request.

    ``expected``: versions read by the caller: of its proposal and, to approve it, of its effect.
    Raises NotFound, NoAccess, InvalidOperation, Conflict, ValidationError, and the errors of applying a change. If its
    effect is no longer the approved one, its approvals are withdrawn, and Conflict gives the reason.
    """
    request, refusal = _set_state(project_id, request_id, state, text, expected, caller)
    if refusal is not None:
        raise refusal
    return request


@transactional
def _set_state(
    project_id: str, request_id: int, state: str, text: str, expected: Expected, caller: Caller
) -> tuple[ChangeRequest, Conflict | None]:
    """Returns a refusal instead of raising it, so that withdrawn approvals are committed."""
    request = access_request_for_update(project_id, request_id, caller, expected=expected)
    steps: dict[State, Callable[[ChangeRequest, Caller], Conflict | None]] = {
        State.IN_REVIEW: _send,
        State.APPROVED: partial(_approve, expected=expected),
        State.REJECTED: _reject,
        State.APPLIED: _apply,
        State.CANCELLED: _cancel,
    }
    if state not in steps:
        raise ValidationError.at("state", f"must be one of {', '.join(State.values[1:])}, not {state}")
    if text:
        add_comment(request, text, caller)
    return request, steps[State(state)](request, caller)


def _send(request: ChangeRequest, caller: Caller) -> None:
    check_author(request, caller)
    check_may_propose(request.project_id, caller)
    check_state(request, "send", State.DRAFT)
    if not request.changes.exists():
        raise InvalidOperation(f"Change request {request.pk} has no changes.")
    request.impact, request.fingerprint = measure(request), foresee_fingerprint(request)
    begin_review(request, caller)


def _approve(request: ChangeRequest, caller: Caller, *, expected: Expected) -> None:
    check_may_approve(request.project_id, request.environment_id, caller)
    if has_lapsed(request):
        begin_review(request, caller)
    check_state(request, "approve", State.IN_REVIEW)
    if is_author(request, caller) and not caller.is_admin:
        raise InvalidOperation("You cannot approve your own change request.")
    if is_program(caller):
        raise InvalidOperation(f"Only people can approve change requests, and {caller.name} is a program.")
    if tie := find_author_tie(request, caller):
        raise NoAccess(f"You cannot approve this change request. {tie}")
    if request.reviews.filter(by(caller), approved=True).exists():
        raise Conflict(f"You have already approved change request {request.pk}.")
    impact, fingerprint = measure(request), foresee_fingerprint(request)
    check_effect(request, fingerprint, expected)
    if request.reviews.exists():
        note_moved(request, impact, fingerprint)
    request.impact, request.fingerprint = impact, fingerprint
    request.required_approvals = count_needed(request, impact)
    _review(request, caller, approved=True)
    record_event(EventType.CHANGE_REQUEST_APPROVAL_ADDED, request, caller)
    request.save(update_fields=["impact", "summary", "fingerprint", "moved", "required_approvals"])
    if count_approvals(request) >= request.required_approvals:
        request.moved = None
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)


def _reject(request: ChangeRequest, caller: Caller) -> None:
    check_may_approve(request.project_id, request.environment_id, caller)
    check_state(request, "reject", *UNDECIDED)
    _review(request, caller, approved=False)
    enter(request, State.REJECTED, EventType.CHANGE_REQUEST_REJECTED, caller)


def _review(request: ChangeRequest, caller: Caller, *, approved: bool) -> None:
    """Stores one review per author, who may have another user name by now."""
    decided = {
        "approved": approved,
        "impact": request.impact,
        "fingerprint": request.fingerprint,
        "by_system": caller.user is None and caller.token is None,
    }
    who = {"author": caller.user, "author_name": caller.name}
    Review.objects.filter(by(caller)).update_or_create(request=request, defaults=who | decided)


def _cancel(request: ChangeRequest, caller: Caller) -> None:
    if not caller.is_admin:
        check_author(request, caller)
    check_state(request, "cancel", *OPEN, State.SCHEDULED)
    enter(request, State.CANCELLED, EventType.CHANGE_REQUEST_CANCELLED, caller)


def _apply(request: ChangeRequest, caller: Caller) -> Conflict | None:
    approve_if_enough(request, caller)
    check_may_apply(request, caller)
    check_state(request, "apply", State.APPROVED, State.SCHEDULED)
    check_conflicts(request)
    if refusal := withdraw_if_moved(request, caller):
        return refusal
    make_changes_as(caller, request)
    enter(request, State.APPLIED, EventType.CHANGE_REQUEST_APPLIED, caller)
    return None


def may_apply_now(request: ChangeRequest, caller: Caller) -> bool:
    """Whether its state allows the caller to apply or schedule it."""
    if has_enough(request):
        return may_apply(request, caller, needed=count_needed(request, request.impact))
    return request.state in (State.APPROVED, State.SCHEDULED) and may_apply(request, caller)


def list_possible_states(request: ChangeRequest, caller: Caller) -> list[State]:
    """The states to which the caller may move the request now."""
    reviewer = may_approve(request.project_id, request.environment_id, caller)
    mine, admin = is_author(request, caller), caller.is_admin
    approved = request.reviews.filter(by(caller), approved=True).exists()
    possible = {
        State.IN_REVIEW: request.state == State.DRAFT and mine,
        State.APPROVED: (request.state == State.IN_REVIEW or has_lapsed(request))
        and reviewer
        and (admin or not mine)
        and not approved
        and not is_program(caller)
        and not find_author_tie(request, caller),
        State.APPLIED: may_apply_now(request, caller),
        State.REJECTED: request.state in UNDECIDED and reviewer,
        State.CANCELLED: request.state in UNDECIDED and (mine or admin),
    }
    return [state for state, is_possible in possible.items() if is_possible]
