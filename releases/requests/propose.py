"""Adds changes to drafts, and edits those of requests."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rest_framework.utils.encoders import JSONEncoder

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import read_transaction_time
from flagadmin.core.change_options import get_comment
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NotFound, ValidationError
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from projects.access import access_project
from projects.models import Environment, Flag, ProjectEnvironment
from releases.changes import KINDS, find_kind
from releases.derive import ProposedChange
from releases.models import Change, ChangeRequest
from releases.requests.access import access_own_for_update, lock_project
from releases.requests.apply import try_changes
from releases.requests.conflicts import name_request, narrow_payload, read_now
from releases.requests.details import add_comment, save_title
from releases.requests.documents import request_document
from releases.requests.events import change_event_document, enter, record_event
from releases.requests.impact import changes_nothing
from releases.requests.queries import by
from releases.requests.review import begin_review, measure, review_again

State = ChangeRequest.State
MAX_CHANGES = 250
OF_STRATEGIES = ("addStrategy", "updateStrategy", "deleteStrategy", "reorderStrategy")


@transactional
def add_changes(
    project_id: str,
    environment: str,
    changes: Sequence[ProposedChange],
    *,
    replaces_strategies: Collection[str] = (),
    caller: Caller,
) -> ChangeRequest:
    """Adds changes to the caller's draft for the environment, which is created if there is none.

    A second change of the same thing replaces the first, and one back to the start removes it: a draft that is left
    without changes is discarded. ``replaces_strategies`` names flags of which the changes lead to all strategies
    that they shall have, as those of an import do: the draft's earlier changes of these give way. Raises NotFound,
    ValidationError, and whatever making the changes would raise: they are tried in a transaction that is rolled back.
    """
    access_project(caller, project_id)
    lock_project(project_id)
    request = _draft_for_update(project_id, environment, caller)
    replaced = request.changes.filter(feature__in=replaces_strategies, action__in=OF_STRATEGIES)
    _discard_changes(request, replaced, caller)
    _add_all(request, changes, caller)
    if not request.changes.exists():
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
    """Sends the changes to review as a separate request from the caller's draft. Raises as `add_changes`.

    Where nothing asks for requests, it is approved at once. The note and the comment on the change become its first
    comments.
    """
    access_project(caller, project_id)
    lock_project(project_id)
    request = _create(project_id, environment, State.IN_REVIEW, caller)
    _add_all(request, changes, caller)
    save_title(request, title or name_request(request))
    for text in filter(None, (note, get_comment())):
        add_comment(request, text, caller)
    request.impact = measure(request)
    begin_review(request, caller)
    return request


def _add_all(request: ChangeRequest, changes: Sequence[ProposedChange], caller: Caller) -> None:
    _check_number(len(changes))  # adding so many would take seconds
    added = {_add(request, change, caller): change for change in changes}
    _check_number(request.changes.count())
    try_changes(request, added)


@transactional
def edit_change(
    project_id: str, request_id: int, change_id: int, proposed: ProposedChange, *, caller: Caller
) -> ChangeRequest:
    """Replaces a change, and another one of the same thing, which withdraws the approvals.

    One back to the start is removed, as `remove_change` does. Raises NotFound, NoAccess, InvalidOperation,
    ValidationError.
    """
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
    """Makes a change that is in conflict on top of what is stored now, which withdraws the approvals.

    What others have changed since, and the change does not, stays theirs. Raises NotFound, also if there is nothing
    left to change, NoAccess, InvalidOperation, ValidationError.
    """
    request = access_own_for_update(project_id, request_id, caller)
    change = _find_change(request, change_id)
    before = change_event_document(change)
    change.payload = narrow_payload(change, change.made_from)
    change.made_from = read_now(request, change)
    _save_edited(request, change, before, caller)
    return request


def _save_edited(request: ChangeRequest, change: Change, before: Any, caller: Caller) -> None:
    change.created_at = read_transaction_time()  # it is made from what is there now
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
    record_event(EventType.CHANGE_REQUEST_DISCARDED, request, caller, before=request_document(request))
    ChangeRequest.objects.filter(pk=request.pk).delete()  # callers still say its number


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


def _add(request: ChangeRequest, proposed: ProposedChange, caller: Caller) -> int | None:
    """Returns the id of the change, None if it has only removed another one."""
    change = Change(request=request, author_name=caller.name)
    _take_over(change, proposed)
    if _discard_replaced(request, change, caller) and _is_back_at_start(request, change):
        return None
    change.save()
    record_event(EventType.CHANGE_ADDED, request, caller, after=change_event_document(change))
    return change.pk


def _take_over(change: Change, proposed: ProposedChange) -> None:
    """Makes it what is proposed, from what is stored now. Raises ValidationError."""
    kind = find_kind(proposed.action, proposed.locate("action"))
    if kind.of_segment == bool(proposed.feature):
        needs = "must not be given for segments" if kind.of_segment else "is missing"
        raise ValidationError.at(proposed.locate("feature"), needs)
    change.action, change.feature = proposed.action, proposed.feature
    change.payload = _plain(kind.clean(proposed.payload, proposed.locate("payload")))
    try:
        change.made_from = read_now(change.request, change)
    except NotFound as error:
        flags = Flag.objects.active().filter(project=change.request.project_id, name=change.feature)
        place = proposed.locate("payload" if kind.of_segment or flags.exists() else "feature")
        raise ValidationError.at(place, error.message) from error


def _is_back_at_start(request: ChangeRequest, change: Change) -> bool:
    if KINDS[change.action].of_segment:
        return change.action == "updateSegment" and not narrow_payload(change, change.made_from).keys() - {
            "id"
        }
    try:
        return not KINDS[change.action].is_later and changes_nothing(request, change)
    except ValidationError:
        return False  # trying it says what is wrong


def _discard_replaced(request: ChangeRequest, change: Change, caller: Caller) -> bool:
    """Discards the request's other changes of what this one changes. Returns whether there are any."""
    replaced = _find_replaced(request, change)
    _discard_changes(request, replaced, caller)
    return bool(replaced)


def _discard_changes(request: ChangeRequest, changes: Iterable[Change], caller: Caller) -> None:
    for change in changes:
        record_event(EventType.CHANGE_DISCARDED, request, caller, before=change_event_document(change))
        change.delete()


def _find_replaced(request: ChangeRequest, change: Change) -> list[Change]:
    if not (subject := KINDS[change.action].find_subject(change.payload)):
        return []
    others = request.changes.filter(feature=change.feature).exclude(pk=change.pk)
    return [other for other in others if KINDS[other.action].find_subject(other.payload) == subject]


def _plain(value: Any) -> Any:
    """As PostgreSQL gives it back."""
    return json.loads(json.dumps(value, cls=JSONEncoder))


def _check_number(number: int) -> None:
    if number > MAX_CHANGES:
        raise ValidationError(f"A change request has at most {MAX_CHANGES} changes, not {number}.")


def _find_change(request: ChangeRequest, change_id: int) -> Change:
    return get_or_404(
        request.changes, f"Change request {request.pk} has no change {change_id}.", pk=change_id
    )
