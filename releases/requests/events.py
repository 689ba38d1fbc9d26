"""Records what happens to change requests."""

from typing import Any

from flagadmin.core.audit.record import Event, EventType, read_transaction_time, record
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.segments.cut_lists import cut_lists
from releases.changes import KINDS
from releases.models import Change, ChangeRequest, Schedule
from releases.requests.documents import request_document

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
