"""Adds changes to drafts, sends those of programs once, and edits those of requests."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import transaction
from rest_framework.utils.encoders import JSONEncoder

from flagadmin.core.audit.record import EventType, read_transaction_time, recording_together
from flagadmin.core.change_options import get_comment
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Conflict, InvalidOperation, NotFound, ValidationError
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.models import Environment, Flag, ProjectEnvironment
from releases.changes import KINDS, find_kind, includes, narrow_payload
from releases.derive import ProposedChange
from releases.models import Change, ChangeRequest
from releases.requests.apply import try_changes
from releases.requests.approvals import access_own_for_update, check_may_propose, lock_project
from releases.requests.conflicts import explain_conflict, name_request, read_now
from releases.requests.details import (
    add_comment,
    change_event_document,
    enter,
    record_event,
    request_event_document,
    save_title,
    set_title,
)
from releases.requests.impact import changes_nothing, list_idle
from releases.requests.queries import UNDECIDED, by
from releases.requests.review import begin_review, foresee_fingerprint, measure, review_again
from releases.requests.states import set_state
from releases.targets import StoredFlags

State = ChangeRequest.State
MAX_CHANGES = 250
NOTHING_LEFT = "These changes leave everything as it is: there is nothing to request."


@transactional
def add_changes(
    project_id: str,
    environment: str,
    changes: Sequence[ProposedChange],
    *,
    replaces_strategies: Collection[str] = (),
    may_discard: bool = False,
    caller: Caller,
) -> ChangeRequest:
    """Adds changes to the caller's draft for the environment, which is created if there is none.

    A second change of the same part replaces the first, and a change back to the start removes it. An empty draft is
    discarded with ``may_discard``; otherwise InvalidOperation is raised. ``replaces_strategies`` names flags whose
    changes define all their strategies, as in an import: they supersede the draft's earlier changes of these. Raises
    NotFound, ValidationError, and the errors of making the changes, which are tried in a transaction that is rolled
    back.
    """
    check_may_propose(project_id, caller)
    lock_project(project_id)
    request = _draft_for_update(project_id, environment, caller)
    of_strategies = [action for action, kind in KINDS.items() if kind.of_strategies]
    replaced = request.changes.filter(feature__in=replaces_strategies, action__in=of_strategies)
    _discard_changes(request, replaced, caller)
    _add_all(request, changes, caller)
    if not request.changes.exists():
        if not may_discard:
            raise InvalidOperation(NOTHING_LEFT)
        _discard(request, caller)
    elif text := get_comment():
        add_comment(request, text, caller)
    return request


@transactional
def send_changes(
    project_id: str,
    environment: str,
    changes: Sequence[ProposedChange],
    *,
    title: str = "",
    note: str = "",
    caller: Caller,
) -> ChangeRequest:
    """Sends the changes to review as a separate request from the caller's draft.

    Raises the errors of `add_changes`, and InvalidOperation if the changes cancel each other out. If requests are not
    required, it is approved at once. The note and the comment on the change become its first comments.
    """
    check_may_propose(project_id, caller)
    lock_project(project_id)
    request = _create(project_id, environment, State.IN_REVIEW, caller)
    _add_all(request, changes, caller)
    if not request.changes.exists():
        raise InvalidOperation(NOTHING_LEFT)
    save_title(request, title or name_request(request))
    for text in filter(None, (note, get_comment())):
        add_comment(request, text, caller)
    request.impact, request.fingerprint = measure(request), foresee_fingerprint(request)
    begin_review(request, caller)
    return request


def _add_all(request: ChangeRequest, changes: Sequence[ProposedChange], caller: Caller) -> None:
    _check_number(len(changes))  # adding so many would take seconds
    with recording_together():
        added = _add_each(request, changes, caller)
    _check_number(request.changes.count())
    try_changes(request, added)


@transactional
def edit_change(
    project_id: str, request_id: int, change_id: int, proposed: ProposedChange, *, caller: Caller
) -> ChangeRequest:
    """Replaces a change, and another one of the same part, which withdraws the approvals.

    A change back to the start is removed, like with `remove_change`. Raises NotFound, NoAccess, InvalidOperation,
    ValidationError.
    """
    check_may_propose(project_id, caller)
    request = access_own_for_update(project_id, request_id, caller)
    change = _find_change(request, change_id)
    before = change_event_document(change)
    _take_over(change, proposed)
    _discard_replaced(request, change, caller)
    if _is_back_at_start(request, change):
        _remove(request, change, before, caller)
    else:
        _save_edited(request, change, before, caller)
    return request


@transactional
def keep_change(project_id: str, request_id: int, change_id: int, *, caller: Caller) -> ChangeRequest:
    """Rebases a conflicting change on the stored state, which withdraws the approvals.

    Keeps others' changes that this one does not touch. Raises NotFound, also if there is nothing left to change,
    NoAccess, InvalidOperation, ValidationError.
    """
    check_may_propose(project_id, caller)
    request = access_own_for_update(project_id, request_id, caller)
    change = _find_change(request, change_id)
    before = change_event_document(change)
    change.payload = narrow_payload(change.payload, change.made_from)
    change.made_from = read_now(request, change)
    _save_edited(request, change, before, caller)
    return request


def _save_edited(request: ChangeRequest, change: Change, before: Any, caller: Caller) -> None:
    change.created_at = read_transaction_time()  # based on the present state
    change.save()
    record_event(EventType.CHANGE_EDITED, request, caller, before=before, after=change_event_document(change))
    review_again(request, caller)
    try_changes(request)


@transactional
def remove_change(project_id: str, request_id: int, change_id: int, *, caller: Caller) -> None:
    """Removes a change. With the last one a draft is discarded, and a request that was sent is cancelled.

    Raises NotFound, NoAccess, InvalidOperation.
    """
    request = access_own_for_update(project_id, request_id, caller)
    change = _find_change(request, change_id)
    _remove(request, change, change_event_document(change), caller)


def _remove(request: ChangeRequest, change: Change, before: Any, caller: Caller) -> None:
    change.delete()
    record_event(EventType.CHANGE_DISCARDED, request, caller, before=before)
    if request.changes.exists():
        review_again(request, caller)
    elif request.state == State.DRAFT:
        _discard(request, caller)
    else:
        enter(request, State.CANCELLED, EventType.CHANGE_REQUEST_CANCELLED, caller)


@transactional
def delete_request(project_id: str, request_id: int, *, caller: Caller) -> None:
    """Discards a draft. Raises NotFound, NoAccess, InvalidOperation if it has been sent."""
    request = access_own_for_update(project_id, request_id, caller)
    if request.state != State.DRAFT:
        raise InvalidOperation(f"Change request {request_id} has been sent. Cancel it instead.")
    _discard(request, caller)


def _discard(request: ChangeRequest, caller: Caller) -> None:
    record_event(EventType.CHANGE_REQUEST_DISCARDED, request, caller, before=request_event_document(request))
    ChangeRequest.objects.filter(pk=request.pk).delete()  # callers still use its number


def _draft_for_update(project_id: str, environment: str, caller: Caller) -> ChangeRequest:
    mine = ChangeRequest.objects.select_for_update(of=("self",)).filter(
        project=project_id, environment=environment, state=State.DRAFT
    )
    draft = mine.filter(by(caller)).first()
    return draft or _create(project_id, environment, State.DRAFT, caller)


def _create(project_id: str, environment: str, state: State, caller: Caller) -> ChangeRequest:
    if not ProjectEnvironment.objects.filter(project=project_id, environment=environment).exists():
        raise NotFound(f"Project {project_id} has no environment {environment}.")
    request = ChangeRequest(
        project_id=project_id,
        environment=Environment(name=environment),
        author=caller.user,
        author_name=caller.name,
        state=state,
        state_times={state: iso(read_transaction_time())},
    )
    request.save(force_insert=True)
    record_event(EventType.CHANGE_REQUEST_CREATED, request, caller)
    return request


def _add_each(
    request: ChangeRequest, proposals: Sequence[ProposedChange], caller: Caller
) -> dict[int | None, ProposedChange]:
    """Returns what is added, by the ids of the changes. A few queries, and some for each that replaces another."""
    names = {proposed.feature for proposed in proposals if proposed.feature}
    stored = StoredFlags(request.project_id, request.environment_id, names)
    before = list(request.changes.all())
    kept, replacing, places = [*before], list[Change](), list[tuple[Change, ProposedChange]]()
    for proposed in proposals:
        change = Change(request=request, author_name=caller.name)
        _take_over(change, proposed, stored)
        if replaced := _find_replaced(kept, change):
            kept = [other for other in kept if other not in replaced]
            replacing.append(change)
        kept.append(change)
        places.append((change, proposed))
    _discard_changes(request, [change for change in before if change not in kept], caller)
    _save_all(request, [change for change in kept if change.pk is None], replacing, caller)
    return {change.pk: proposed for change, proposed in places}


def _save_all(
    request: ChangeRequest, changes: Sequence[Change], replacing: Collection[Change], caller: Caller
) -> None:
    """Saves them in their order, but for those that replace another one and lead back to the start."""
    ahead: list[Change] = []
    compared = _list_comparable(request, [change for change in changes if change in replacing])
    for change in changes:
        if change in compared:
            _save_added(request, ahead, caller)  # they are compared with
            ahead = []
            if _is_back_at_start(request, change):
                continue
        ahead.append(change)
    _save_added(request, ahead, caller)


def _list_comparable(request: ChangeRequest, changes: Sequence[Change]) -> list[Change]:
    """Those of the changes that may lead back to the start."""
    of_segments = [change for change in changes if KINDS[change.action].of_segment]
    others = [change for change in changes if change not in of_segments]
    return of_segments + (list_idle(request, others) if others else [])


def _save_added(request: ChangeRequest, changes: Sequence[Change], caller: Caller) -> None:
    for change in Change.objects.bulk_create(changes):
        record_event(EventType.CHANGE_ADDED, request, caller, after=change_event_document(change))


def _take_over(change: Change, proposed: ProposedChange, stored: StoredFlags | None = None) -> None:
    """Makes it what is proposed, from what is stored now. Raises ValidationError."""
    kind = find_kind(proposed.action, proposed.locate("action"))
    if kind.of_segment == bool(proposed.feature):
        needs = "must not be given for segments" if kind.of_segment else "is missing"
        raise ValidationError.at(proposed.locate("feature"), needs)
    change.action, change.feature = proposed.action, proposed.feature
    change.payload = _plain(kind.clean(proposed.payload, proposed.locate("payload")))
    try:
        change.made_from = read_now(change.request, change, stored)
    except NotFound as error:
        flags = Flag.objects.active().filter(project=change.request.project_id, name=change.feature)
        place = proposed.locate("payload" if kind.of_segment or flags.exists() else "feature")
        raise ValidationError.at(place, error.message) from error


def _is_back_at_start(request: ChangeRequest, change: Change) -> bool:
    kind = KINDS[change.action]
    if kind.of_segment:
        return kind.is_idle(change.payload, change.made_from)
    try:
        return not kind.is_later and changes_nothing(request, change)
    except ValidationError:
        return False  # trying it reports the problem


def _discard_replaced(request: ChangeRequest, change: Change, caller: Caller) -> None:
    """Discards the request's other changes of what this one changes."""
    others = request.changes.filter(feature=change.feature).exclude(pk=change.pk)
    _discard_changes(request, _find_replaced(others, change), caller)


def _discard_changes(request: ChangeRequest, changes: Iterable[Change], caller: Caller) -> None:
    discarded = list(changes)
    for change in discarded:
        record_event(EventType.CHANGE_DISCARDED, request, caller, before=change_event_document(change))
    Change.objects.filter(pk__in=[change.pk for change in discarded]).delete()


def _find_replaced(others: Iterable[Change], change: Change) -> list[Change]:
    subject = KINDS[change.action].find_subject(change.payload)
    return [
        other
        for other in others
        if other.feature == change.feature
        and includes(subject, KINDS[other.action].find_subject(other.payload))
    ]


def _plain(value: Any) -> Any:
    """The value in the form that PostgreSQL returns."""
    return json.loads(json.dumps(value, cls=JSONEncoder))


def _check_number(number: int) -> None:
    if number > MAX_CHANGES:
        raise ValidationError(f"A change request has at most {MAX_CHANGES} changes, not {number}.")


def _find_change(request: ChangeRequest, change_id: int) -> Change:
    return get_or_404(
        request.changes, f"Change request {request.pk} has no change {change_id}.", pk=change_id
    )


@transactional
def propose_once(
    project_id: str, environment: str, changes: Sequence[ProposedChange], *, title: str, caller: Caller
) -> tuple[ChangeRequest, bool]:
    """A request with these changes, sent for review, and whether it is new.

    Returns the caller's open request with this title and the same changes unchanged; one with other changes, or in
    conflict, is cancelled. Raises Conflict if the caller has a draft there, and the errors of adding and sending the
    changes.
    """
    mine = ChangeRequest.objects.filter(by(caller), project=project_id, environment=environment)
    if draft := mine.filter(state=State.DRAFT).first():
        raise Conflict(
            f"You have a draft for {environment} in project {project_id}, change request {draft.pk}. "
            "Send or discard it first."
        )
    open_requests = list(mine.filter(state__in=UNDECIDED, title=title))
    with transaction.atomic():
        request = add_changes(project_id, environment, changes, caller=caller)
        wanted = _contents(request)
        same = next((other for other in open_requests if _is_same(other, wanted)), None)
        if same is not None:
            transaction.set_rollback(True)
    if same is not None:
        return same, False
    for other in open_requests:
        text = f"Replaced by change request {request.pk}."
        set_state(project_id, other.pk, State.CANCELLED, text=text, caller=caller)
    set_title(project_id, request.pk, title, caller=caller)
    return set_state(project_id, request.pk, State.IN_REVIEW, caller=caller), True


def _is_same(request: ChangeRequest, wanted: list[Any]) -> bool:
    return _contents(request) == wanted and not explain_conflict(request, list(request.changes.all()))


def _contents(request: ChangeRequest) -> list[Any]:
    return list(request.changes.order_by("id").values_list("feature", "action", "payload"))
