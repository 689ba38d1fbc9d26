"""Proposes, reviews and applies changes.

A request is locked by its row for every step, so that two people who apply it apply it once.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from rest_framework.utils.encoders import JSONEncoder

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record, transaction_moment
from flagadmin.core.change_checks.comments import commenting
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import (
    AppError,
    Conflict,
    InvalidOperation,
    NoAccess,
    NotFound,
    ValidationError,
    counted,
)
from flagadmin.core.http.timestamps import iso
from groups.access import EVERYTHING, Caller
from groups.models import User
from groups.permissions import Permission
from projects.access import access_project, access_project_for_update
from projects.models import Environment, Project, ProjectEnvironment
from releases.applying import applying
from releases.changes import KINDS, find_kind
from releases.derive import ProposedChange
from releases.models import Change, ChangeRequest, Comment, Review, Schedule
from releases.requests.approvals import check_may_approve, count_needed, may_approve
from releases.requests.conflicts import find_conflict, sentence_of, target_of
from releases.requests.documents import request_document
from releases.requests.drift import find_moved
from releases.requests.impact import try_measure

State = ChangeRequest.State
OPEN = frozenset({State.DRAFT, State.IN_REVIEW, State.APPROVED})
SENT = (State.IN_REVIEW, State.APPROVED, State.SCHEDULED)
MAX_CHANGES = 250
MAX_REVIEWERS = 10
APPLY = Permission.APPLY_CHANGE_REQUEST


@transactional
def add_changes(
    project_id: str, environment: str, changes: Sequence[ProposedChange], *, caller: Caller
) -> ChangeRequest:
    """Adds changes to the caller's draft for the environment, which is created if there is none.

    A second change of the same thing replaces the first. Raises NotFound, ValidationError, and whatever making the
    changes would raise: they are tried in a transaction that is rolled back.
    """
    access_project(caller, project_id)
    lock_project(project_id)
    _check_takes_requests(project_id, environment)
    request = _draft_for_update(project_id, environment, caller)
    for index, change in enumerate(changes):
        _add(request, change, f"[{index}]", caller)
    _check_size(request)
    try_changes(request)
    return request


@transactional
def edit_change(
    project_id: str, request_id: int, change_id: int, proposed: ProposedChange, *, caller: Caller
) -> ChangeRequest:
    """Replaces a change, which withdraws the approvals.

    Raises NotFound, NoAccess, InvalidOperation, ValidationError.
    """
    request = _access_own_for_update(project_id, request_id, caller)
    change = _find_change(request, change_id)
    before = change_event_document(change)
    kind = find_kind(proposed.action, "action")
    change.action, change.feature = proposed.action, proposed.feature
    change.payload = _plain(kind.checked(proposed.payload, "payload"))
    change.made_from = _read(change, request)
    change.save()
    record_event(EventType.CHANGE_EDITED, request, caller, before=before, after=change_event_document(change))
    _review_again(request, caller)
    try_changes(request)
    return request


@transactional
def remove_change(project_id: str, request_id: int, change_id: int, *, caller: Caller) -> None:
    """Removes a change, and with the last one the draft. Raises NotFound, NoAccess, InvalidOperation."""
    request = _access_own_for_update(project_id, request_id, caller)
    change = _find_change(request, change_id)
    before = change_event_document(change)
    change.delete()
    record_event(EventType.CHANGE_DISCARDED, request, caller, before=before)
    if request.changes.exists():
        _review_again(request, caller)
    elif request.state == State.DRAFT:
        _discard(request, caller)
    else:
        enter(request, State.CANCELLED, EventType.CHANGE_REQUEST_CANCELLED, caller)


@transactional
def delete_request(project_id: str, request_id: int, *, caller: Caller) -> None:
    """Discards a draft. Raises NotFound, NoAccess, InvalidOperation if it has been sent."""
    request = _access_own_for_update(project_id, request_id, caller)
    if request.state != State.DRAFT:
        raise InvalidOperation(f"Change request {request_id} has been sent. Cancel it instead.")
    _discard(request, caller)


def _discard(request: ChangeRequest, caller: Caller) -> None:
    record_event(EventType.CHANGE_REQUEST_DISCARDED, request, caller, before=request_document(request))
    request.delete()


@transactional
def set_title(project_id: str, request_id: int, title: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess, InvalidOperation."""
    request = _access_own_for_update(project_id, request_id, caller)
    request.title = title
    request.save(update_fields=["title"])


@transactional
def set_reviewers(project_id: str, request_id: int, ids: Iterable[int], *, caller: Caller) -> list[User]:
    """Names who is asked for a review. Raises NotFound, NoAccess, ValidationError."""
    request = _access_own_for_update(project_id, request_id, caller)
    wanted = sorted(set(ids))
    if len(wanted) > MAX_REVIEWERS:
        raise ValidationError.at("reviewers", f"must be at most {MAX_REVIEWERS}, not {len(wanted)}")
    known = {user.pk: user for user in available_reviewers(project_id, request.environment_id)}
    if unknown := [pk for pk in wanted if pk not in known]:
        raise ValidationError.at("reviewers", f"{unknown[0]} is nobody who may approve changes there.")
    request.reviewers.set(wanted)
    return [known[pk] for pk in wanted]


def available_reviewers(project_id: str, environment: str) -> list[User]:
    """The people who may approve changes of the environment, by name."""
    people = User.objects.people().filter(is_active=True).order_by("username")
    return [user for user in people if may_approve(project_id, environment, Caller(user=user))]


@transactional
def comment(project_id: str, request_id: int, text: str, *, caller: Caller) -> Comment:
    """Raises NotFound."""
    request = access_request_for_update(project_id, request_id, caller)
    return add_comment(request, text, caller)


def add_comment(request: ChangeRequest, text: str, caller: Caller) -> Comment:
    return Comment.objects.create(request=request, text=text, author=caller.user, author_name=caller.name)


def set_state(
    project_id: str, request_id: int, state: str, *, text: str = "", caller: Caller
) -> ChangeRequest:
    """Sends, approves, rejects, applies or cancels a request.

    Raises NotFound, NoAccess, InvalidOperation, Conflict, ValidationError, and what applying a change raises. If it
    would change something else than what was approved, its approvals are withdrawn, and Conflict says why.
    """
    request, refusal = _set_state(project_id, request_id, state, text, caller)
    if refusal is not None:
        raise refusal
    return request


@transactional
def _set_state(
    project_id: str, request_id: int, state: str, text: str, caller: Caller
) -> tuple[ChangeRequest, Conflict | None]:
    """A refusal that is returned rather than raised leaves what was written: withdrawn approvals."""
    request = access_request_for_update(project_id, request_id, caller)
    steps = {
        State.IN_REVIEW: _send,
        State.APPROVED: _approve,
        State.REJECTED: _reject,
        State.APPLIED: _apply,
        State.CANCELLED: _cancel,
    }
    if state not in steps:
        raise ValidationError.at("state", f"must be one of {', '.join(steps)}, not {state}")
    if text:
        add_comment(request, text, caller)
    return request, steps[State(state)](request, caller)


def _send(request: ChangeRequest, caller: Caller) -> None:
    _check_author(request, caller)
    check_state(request, "send", State.DRAFT)
    request.impact = _measure(request)
    _begin_review(request, caller)


def _begin_review(request: ChangeRequest, caller: Caller) -> None:
    """It is approved at once where nobody needs to approve it."""
    request.required_approvals = count_needed(request, request.impact)
    enter(request, State.IN_REVIEW, EventType.CHANGE_REQUEST_SENT_TO_REVIEW, caller)
    if request.required_approvals == 0:
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)


def _measure(request: ChangeRequest) -> dict[str, Any] | None:
    return try_measure(request, now=timezone.now())


def _approve(request: ChangeRequest, caller: Caller) -> None:
    check_may_approve(request.project_id, request.environment_id, caller)
    check_state(request, "approve", State.IN_REVIEW)
    if _is_author(request, caller) and not caller.is_admin:
        raise InvalidOperation("You cannot approve your own change request.")
    if not caller.is_admin and caller.user is None:
        raise InvalidOperation("Only people can approve change requests.")
    if request.reviews.filter(author=caller.user, author_name=caller.name, approved=True).exists():
        raise Conflict(f"You have already approved change request {request.pk}.")
    impact = _measure(request)
    if request.reviews.exists():
        _note_moved(request, impact)
    request.impact, request.required_approvals = impact, count_needed(request, impact)
    _review(request, caller, approved=True)
    record_event(EventType.CHANGE_REQUEST_APPROVAL_ADDED, request, caller)
    request.save(update_fields=["impact", "moved", "required_approvals"])
    if _count_approvals(request) >= request.required_approvals:
        request.moved = None
        enter(request, State.APPROVED, EventType.CHANGE_REQUEST_APPROVED, caller)


def _count_approvals(request: ChangeRequest) -> int:
    return request.reviews.filter(approved=True).count()


def _reject(request: ChangeRequest, caller: Caller) -> None:
    check_may_approve(request.project_id, request.environment_id, caller)
    check_state(request, "reject", *SENT)
    _review(request, caller, approved=False)
    enter(request, State.REJECTED, EventType.CHANGE_REQUEST_REJECTED, caller)


def _review(request: ChangeRequest, caller: Caller, *, approved: bool) -> None:
    decided = {"approved": approved, "impact": request.impact}
    Review.objects.update_or_create(
        request=request, author=caller.user, author_name=caller.name, defaults=decided
    )


def _cancel(request: ChangeRequest, caller: Caller) -> None:
    if not caller.is_admin:
        _check_author(request, caller)
    check_state(request, "cancel", *OPEN, State.SCHEDULED)
    enter(request, State.CANCELLED, EventType.CHANGE_REQUEST_CANCELLED, caller)


def _apply(request: ChangeRequest, caller: Caller) -> Conflict | None:
    check_may_apply(request, caller)
    check_state(request, "apply", State.APPROVED, State.SCHEDULED)
    check_conflicts(request)
    if refusal := withdraw_if_moved(request, caller):
        return refusal
    make_changes_as(caller, request)
    enter(request, State.APPLIED, EventType.CHANGE_REQUEST_APPLIED, caller)
    return None


def make_changes_as(caller: Caller, request: ChangeRequest) -> None:
    """`make_changes`, with the caller's own permissions unless they may apply whatever is approved."""
    everything = caller.can(APPLY, project=request.project_id, environment=request.environment_id)
    make_changes(request, caller, with_own_rights=not everything)


def withdraw_if_moved(request: ChangeRequest, caller: Caller, *, done: str = "applied") -> Conflict | None:
    """Withdraws the approvals of a request that no longer changes what was approved, or asks for more of them.

    Returns why, else None.
    """
    impact = _measure(request)
    if not (reasons := _note_moved(request, impact)):
        return _ask_for_more(request, impact, caller, done)
    request.impact = impact
    _begin_review(request, caller)
    return Conflict(
        f"Change request {request.pk} was not {done}, and its approvals are withdrawn, because it no longer changes "
        f"what was approved. {' '.join(reasons)}"
    )


def find_refusal(request: ChangeRequest) -> str:
    """Why `withdraw_if_moved` would withdraw its approvals, "" if it would not."""
    impact = _measure(request)
    if reasons := find_moved(request, impact)[1]:
        return f"It no longer changes what was approved. {' '.join(reasons)}"
    given, needed = _count_approvals(request), count_needed(request, impact)
    return "" if given >= needed else f"It needs {counted(needed, 'approval')} now and has {given}."


def _ask_for_more(
    request: ChangeRequest, impact: dict[str, Any] | None, caller: Caller, done: str
) -> Conflict | None:
    """Has a request reviewed further that another rule holds for now. Returns why, else None."""
    given, needed = _count_approvals(request), count_needed(request, impact)
    if given >= needed:
        return None
    request.impact = impact
    _begin_review(request, caller)
    return Conflict(
        f"Change request {request.pk} was not {done}: it needs {counted(needed, 'approval')} now and has {given}."
    )


def _note_moved(request: ChangeRequest, impact: dict[str, Any] | None) -> list[str]:
    """Withdraws the approvals if they were of something else, and notes why. Returns the reasons."""
    approved, reasons = find_moved(request, impact)
    if reasons:
        reviews = list(request.reviews.filter(approved=True))
        request.moved = {
            "at": iso(transaction_moment()),
            "approvedAt": iso(reviews[0].created_at) if reviews else request.state_times[State.IN_REVIEW],
            "before": approved,
            "after": impact,
            "reasons": reasons,
            "withdrawn": [review.author_name for review in reviews],
        }
        request.reviews.all().delete()
    return reasons


def possible_states(request: ChangeRequest, caller: Caller) -> list[State]:
    """The states into which the caller may take the request now."""
    reviewer = may_approve(request.project_id, request.environment_id, caller)
    mine, admin = _is_author(request, caller), caller.is_admin
    approved = request.reviews.filter(author=caller.user, author_name=caller.name, approved=True).exists()
    possible = {
        State.IN_REVIEW: request.state == State.DRAFT and mine,
        State.APPROVED: request.state == State.IN_REVIEW
        and reviewer
        and (admin or not mine)
        and not approved,
        State.APPLIED: request.state in (State.APPROVED, State.SCHEDULED) and may_apply(request, caller),
        State.REJECTED: request.state in SENT and reviewer,
        State.CANCELLED: request.state in SENT and (mine or admin),
    }
    return [state for state, is_possible in possible.items() if is_possible]


def may_apply(request: ChangeRequest, caller: Caller) -> bool:
    """With the permission, or the author alone if nobody needs to approve it: with their own permissions then."""
    alone = request.required_approvals == 0 and _is_author(request, caller)
    return alone or caller.can(APPLY, project=request.project_id, environment=request.environment_id)


def check_may_apply(request: ChangeRequest, caller: Caller) -> None:
    """Raises NoAccess."""
    if not may_apply(request, caller):
        _check(request, caller, APPLY)


def may_edit(request: ChangeRequest, caller: Caller) -> bool:
    """Whether the caller may edit its changes and its title."""
    return request.state in OPEN and (caller.is_admin or _is_author(request, caller))


def check_conflicts(request: ChangeRequest) -> None:
    """Raises Conflict if what a change was made from has changed."""
    for number, change in enumerate(request.changes.all(), 1):
        if conflict := find_conflict(request, change):
            raise Conflict(f"Change {number} ({sentence_of(request, change)}): {conflict}")


def make_changes(request: ChangeRequest, caller: Caller, *, with_own_rights: bool = False) -> None:
    """Makes all changes, or none, whatever the caller may do otherwise, or only what they may.

    Raises Conflict with the change named, and NoAccess.
    """
    maker = caller if with_own_rights else Caller(user=caller.user, token=caller.token, rights=EVERYTHING)
    with applying(request.project_id, request.environment_id):
        access_project_for_update(maker, request.project_id, None)
        for number, change in enumerate(request.changes.all(), 1):
            sentence = sentence_of(request, change)
            try:
                KINDS[change.action].apply(target_of(request, change), change.payload, maker)
            except NoAccess:
                raise
            except AppError as error:
                raise Conflict(
                    f"Change {number} ({sentence}): {error.message}", details=error.details
                ) from error


def try_changes(request: ChangeRequest) -> None:
    """Makes the changes, and rolls them back. Raises ValidationError if that fails."""
    try:
        with transaction.atomic(), commenting("Tried, and rolled back"):
            make_changes(request, Caller.system())
            transaction.set_rollback(True)
    except Conflict as error:
        raise ValidationError(error.message, details=error.details) from error


def access_request(project_id: str, request_id: int, caller: Caller) -> ChangeRequest:
    """A request that the caller may read: in a readable project, and no draft of somebody else. Raises NotFound."""
    access_project(caller, project_id)
    request = ChangeRequest.objects.filter(project=project_id, pk=request_id).first()
    if request is None or (request.state == State.DRAFT and not _is_author(request, caller)):
        raise NotFound(f"Change request {request_id} not found in project {project_id}.")
    return request


def access_request_for_update(project_id: str, request_id: int, caller: Caller) -> ChangeRequest:
    access_request(project_id, request_id, caller)
    lock_project(project_id)
    request = ChangeRequest.objects.select_for_update(of=("self",)).filter(pk=request_id).first()
    if request is None:
        raise NotFound(f"Change request {request_id} not found in project {project_id}.")
    return request


def lock_project(project_id: str) -> None:
    """Projects are locked before what belongs to them. The checks of the project begin with the changes themselves."""
    list(Project.objects.select_for_update(no_key=True).filter(id=project_id).order_by("id"))


def _access_own_for_update(project_id: str, request_id: int, caller: Caller) -> ChangeRequest:
    """An open request of the caller's."""
    request = access_request_for_update(project_id, request_id, caller)
    if not caller.is_admin:
        _check_author(request, caller)
    check_state(request, "change", *OPEN)
    return request


def _check_author(request: ChangeRequest, caller: Caller) -> None:
    if not _is_author(request, caller):
        raise NoAccess(f"Change request {request.pk} is {request.author_name}'s: only they can do that.")


def _is_author(request: ChangeRequest, caller: Caller) -> bool:
    if request.author_id is not None:
        return request.author_id == caller.id
    return caller.id is None and request.author_name == caller.name


def _check(request: ChangeRequest, caller: Caller, permission: Permission) -> None:
    caller.check(permission, project=request.project_id, environment=request.environment_id)


def check_state(request: ChangeRequest, verb: str, *states: State) -> None:
    if request.state not in states:
        needed = " or ".join(states)
        raise InvalidOperation(
            f"Change request {request.pk} is in state {request.state}: to {verb} it, it must be in state {needed}."
        )


def _check_takes_requests(project_id: str, environment: str) -> None:
    link = ProjectEnvironment.objects.filter(project=project_id, environment=environment).first()
    if link is None:
        raise NotFound(f"Project {project_id} has no environment {environment}.")
    if link.required_approvals is None:
        raise InvalidOperation(f"Change requests are off for {environment} in project {project_id}.")


def _draft_for_update(project_id: str, environment: str, caller: Caller) -> ChangeRequest:
    mine = ChangeRequest.objects.select_for_update(of=("self",)).filter(
        project=project_id, environment=environment, state=State.DRAFT
    )
    found = mine.filter(author=caller.user, author_name=caller.name).first()
    if found is not None:
        return found
    request = ChangeRequest(
        project_id=project_id,
        environment=Environment(name=environment),
        author=caller.user,
        author_name=caller.name,
        state_times={State.DRAFT: iso(transaction_moment())},
    )
    request.save(force_insert=True)
    record_event(EventType.CHANGE_REQUEST_CREATED, request, caller)
    return request


def _add(request: ChangeRequest, proposed: ProposedChange, path: str, caller: Caller) -> None:
    kind = find_kind(proposed.action, f"{path}.action")
    if kind.of_segment == bool(proposed.feature):
        needs = "must not be given for segments" if kind.of_segment else "is missing"
        raise ValidationError.at(f"{path}.feature", needs)
    change = Change(
        request=request, feature=proposed.feature, action=proposed.action, author_name=caller.name
    )
    change.payload = _plain(kind.checked(proposed.payload, f"{path}.payload"))
    if kind.about is not None:
        about = kind.about(change.payload)
        for other in request.changes.filter(feature=change.feature):
            other_about = KINDS[other.action].about
            if other_about is not None and other_about(other.payload) == about:
                other.delete()
    change.made_from = _read(change, request)
    change.save()
    record_event(EventType.CHANGE_ADDED, request, caller, after=change_event_document(change))


def _read(change: Change, request: ChangeRequest) -> Any:
    return _plain(KINDS[change.action].read(target_of(request, change), change.payload))


def _plain(value: Any) -> Any:
    """As PostgreSQL gives it back."""
    return json.loads(json.dumps(value, cls=JSONEncoder))


def _check_size(request: ChangeRequest) -> None:
    number = request.changes.count()
    if number > MAX_CHANGES:
        raise ValidationError(f"A change request has at most {MAX_CHANGES} changes, not {number}.")


def _find_change(request: ChangeRequest, change_id: int) -> Change:
    change = request.changes.filter(pk=change_id).first()
    if change is None:
        raise NotFound(f"Change request {request.pk} has no change {change_id}.")
    return change


def _review_again(request: ChangeRequest, caller: Caller) -> None:
    """A request that has been sent goes back into review, without what was decided."""
    if request.state == State.DRAFT:
        return
    request.reviews.all().delete()
    request.impact, request.moved = _measure(request), None
    _begin_review(request, caller)


def enter(request: ChangeRequest, state: State, event: EventType, caller: Caller) -> None:
    if request.state == State.SCHEDULED and state != State.SCHEDULED:
        Schedule.objects.filter(request=request).exclude(status=Schedule.Status.DONE).delete()
    request.state = state
    request.state_times = request.state_times | {state: iso(transaction_moment())}
    request.save(update_fields=["state", "state_times", "required_approvals", "impact", "moved"])
    record_event(event, request, caller, after=request_document(request))


def change_event_document(change: Change) -> dict[str, Any]:
    return {"id": change.pk, "feature": change.feature, "action": change.action, "payload": change.payload}


def record_event(
    kind: EventType, request: ChangeRequest, caller: Caller, *, before: Any = None, after: Any = None
) -> None:
    event = Event(
        type=kind,
        project=request.project_id,
        environment=request.environment_id,
        subject=f"{request.pk}",
        before=before,
        after=after,
    )
    record(event, actor=caller)
