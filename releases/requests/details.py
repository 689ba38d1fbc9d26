"""Title, requested reviewers and comments of a request.

Records what happens to change requests.
"""

from collections.abc import Iterable
from typing import Any

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, read_transaction_time, record
from flagadmin.core.db.lookups import length_problems
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import ValidationError, check_problems
from flagadmin.core.http.fields import MAX_TEXT_LENGTH
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.segments.lists import cut_lists
from releases.changes import KINDS
from releases.models import Change, ChangeRequest, Comment, Schedule
from releases.requests.approvals import access_own_for_update, access_request_for_update
from releases.requests.approvers import list_approvers
from releases.requests.queries import request_document

MAX_REVIEWERS = 10


@transactional
def set_title(project_id: str, request_id: int, title: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess, InvalidOperation, ValidationError."""
    request = access_own_for_update(project_id, request_id, caller)
    before = request.title
    save_title(request, title)
    _record_update(EventType.CHANGE_REQUEST_TITLE_UPDATED, request, "title", before, title, caller)


@transactional
def set_reviewers(project_id: str, request_id: int, ids: Iterable[int], *, caller: Caller) -> None:
    """Sets the people asked for a review. Those asked before may stay, regardless of their present permissions.

    Raises NotFound, NoAccess, ValidationError.
    """
    request = access_own_for_update(project_id, request_id, caller)
    _save_reviewers(request, set(ids), caller)


@transactional
def ask_reviewer(project_id: str, request_id: int, user_id: int, *, caller: Caller) -> None:
    """Asks one more person. Raises NotFound, NoAccess, ValidationError."""
    request = access_own_for_update(project_id, request_id, caller)
    _save_reviewers(request, {*_list_asked(request), user_id}, caller)


@transactional
def remove_reviewer(project_id: str, request_id: int, user_id: int, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess."""
    request = access_own_for_update(project_id, request_id, caller)
    _save_reviewers(request, _list_asked(request) - {user_id}, caller)


def _list_asked(request: ChangeRequest) -> set[int]:
    return set(request.reviewers.values_list("pk", flat=True))


def _save_reviewers(request: ChangeRequest, wanted: set[int], caller: Caller) -> None:
    if len(wanted) > MAX_REVIEWERS:
        raise ValidationError.at("reviewers", f"must be at most {MAX_REVIEWERS}, not {len(wanted)}")
    known = {user.pk for user in list_approvers(request.project_id, request.environment_id)}
    if unknown := sorted(wanted - known - _list_asked(request)):
        raise ValidationError.at("reviewers", f"{unknown[0]} is nobody who may approve changes there.")
    before = list_reviewers(request)
    request.reviewers.set(wanted)
    after = list_reviewers(request)
    _record_update(EventType.CHANGE_REQUEST_REVIEWERS_UPDATED, request, "reviewers", before, after, caller)


def save_title(request: ChangeRequest, title: str) -> None:
    """Raises ValidationError if it is too long."""
    request.title = title
    check_problems(length_problems(request, title="title"))
    request.save(update_fields=["title"])


def _record_update(
    event: EventType, request: ChangeRequest, field: str, before: object, after: object, caller: Caller
) -> None:
    if after != before:
        record_event(event, request, caller, before={field: before}, after={field: after})


@transactional
def comment(project_id: str, request_id: int, text: str, *, caller: Caller) -> Comment:
    """Raises NotFound, ValidationError."""
    request = access_request_for_update(project_id, request_id, caller)
    return add_comment(request, text, caller)


def add_comment(request: ChangeRequest, text: str, caller: Caller) -> Comment:
    """Raises ValidationError if it is too long."""
    if len(text) > MAX_TEXT_LENGTH:
        raise ValidationError.at(
            "comment", f"must have at most {MAX_TEXT_LENGTH:,} characters, not {len(text):,}"
        )
    comment = Comment.objects.create(request=request, text=text, author=caller.user, author_name=caller.name)
    record_event(
        EventType.CHANGE_REQUEST_COMMENT_ADDED, request, caller, after={"id": comment.pk, "text": text}
    )
    return comment


State = ChangeRequest.State


def enter(request: ChangeRequest, state: State, event: EventType, caller: Caller) -> None:
    if request.state == State.SCHEDULED and state != State.SCHEDULED:
        Schedule.objects.filter(request=request).exclude(status=Schedule.Status.DONE).delete()
    request.state = state
    request.state_times = request.state_times | {state: iso(read_transaction_time())}
    request.save(
        update_fields=[
            "state",
            "state_times",
            "required_approvals",
            "impact",
            "summary",
            "fingerprint",
            "moved",
        ]
    )
    after = request_event_document(request) | {"reviewers": list_reviewers(request)}
    record_event(event, request, caller, after=after)


def record_event(
    kind: EventType, request: ChangeRequest, caller: Caller, *, before: Any = None, after: Any = None
) -> None:
    """For a draft, which is private to its author, records only ids. Sending it records its content."""
    is_private = request.state == State.DRAFT
    if is_private:
        before, after = _keep_id(before), _keep_id(after)
    event = Event(
        type=kind,
        project=request.project_id,
        environment=request.environment_id,
        subject=f"{request.pk}",
        before=before,
        after=after,
        keeps_comment=not is_private,
    )
    record(event, actor=caller)


def list_reviewers(request: ChangeRequest) -> list[str]:
    """The user names of the requested reviewers."""
    return sorted(request.reviewers.values_list("username", flat=True))


def _keep_id(document: Any) -> Any:
    return {"id": document["id"]} if document and "id" in document else None


def request_event_document(request: ChangeRequest) -> dict[str, Any]:
    """The document without long lists of segments, which the changes keep."""
    document = request_document(request)
    segments = [each | {"payload": cut_lists(each["payload"])} for each in document["segments"]]
    return document | {"segments": segments}


def change_event_document(change: Change) -> dict[str, Any]:
    payload = cut_lists(change.payload) if KINDS[change.action].of_segment else change.payload
    return {"id": change.pk, "feature": change.feature, "action": change.action, "payload": payload}
