"""Change requests as the API shows them, in the reference server's shape."""

from itertools import repeat
from typing import Any

from flagadmin.core.http.timestamps import iso
from releases.changes import KINDS
from releases.models import ChangeRequest, Schedule
from releases.requests.conflicts import find_conflicts
from releases.requests.queries import CLOSED
from releases.requests.schedule_conflicts import find_schedule_conflicts

Document = dict[str, Any]


def request_document(request: ChangeRequest) -> Document:
    """Makes the document, with what stands against each change as long as the request is open."""
    features: dict[str, list[Document]] = {}
    segments: list[Document] = []
    changes = list(request.changes.all())
    is_open = request.state not in CLOSED
    conflicts = find_conflicts(request, changes) if is_open else repeat("")
    scheduled = find_schedule_conflicts(request, changes) if is_open else repeat([])
    for change, conflict, meeting in zip(changes, conflicts, scheduled, strict=False):
        document: Document = {
            "id": change.pk,
            "action": change.action,
            **({} if change.payload is None else {"payload": change.payload}),
            "createdBy": {"username": change.author_name, "imageUrl": ""},
            "createdAt": iso(change.created_at),
        }
        if conflict:
            document["conflict"] = conflict
        if meeting:
            document["scheduleConflicts"] = {"changeRequests": meeting}
        if KINDS[change.action].of_segment:
            segments.append(document | {"name": _segment_name(change.payload, change.made_from)})
        else:
            features.setdefault(change.feature, []).append(document)
    reviews = list(request.reviews.all())
    return {
        "id": request.pk,
        **({"title": request.title} if request.title else {}),
        "environment": request.environment_id,
        "minApprovals": request.required_approvals,
        "project": request.project_id,
        "features": [{"name": name, "changes": listed} for name, listed in features.items()],
        "segments": segments,
        "approvals": [_review(review) for review in reviews if review.approved],
        "rejections": [_review(review) for review in reviews if not review.approved],
        "comments": [
            {
                "id": comment.pk,
                "text": comment.text,
                "createdBy": {"username": comment.author_name, "imageUrl": ""},
                "createdAt": iso(comment.created_at),
            }
            for comment in request.comments.all()
        ],
        "createdBy": {"username": request.author_name, "imageUrl": ""},
        "createdAt": iso(request.created_at),
        "stateTimestamps": request.state_times,
        "state": request.state,
        **({"impact": request.impact} if request.impact else {}),
        **({"moved": request.moved} if request.moved else {}),
        **(
            {"schedule": _schedule(request.schedule)}
            if request.state == ChangeRequest.State.SCHEDULED
            else {}
        ),
    }


def found_document(request: ChangeRequest) -> Document:
    """As a search lists it: by what it is about, without its changes."""
    changes = list(request.changes.all())
    who: Document = {"username": request.author_name, "imageUrl": ""}
    if request.author_id is not None:
        who["id"] = request.author_id
    return {
        "id": request.pk,
        **({"title": request.title} if request.title else {}),
        "environment": request.environment_id,
        "project": request.project_id,
        "features": list(dict.fromkeys(change.feature for change in changes if change.feature)),
        "segments": [
            _segment_name(change.payload, change.made_from)
            for change in changes
            if KINDS[change.action].of_segment
        ],
        "createdBy": who,
        "createdAt": iso(request.created_at),
        "state": request.state,
        **(
            {"schedule": _schedule(request.schedule)}
            if request.state == ChangeRequest.State.SCHEDULED
            else {}
        ),
    }


def _schedule(schedule: Schedule) -> Document:
    document = {"scheduledAt": iso(schedule.at), "status": schedule.status}
    return document | ({"reason": schedule.reason} if schedule.reason else {})


def _review(review: Any) -> Document:
    who = {"username": review.author_name, "imageUrl": ""}
    if review.author_id is not None:
        who["id"] = review.author_id
    document = {"createdBy": who, "createdAt": iso(review.created_at)}
    return document | ({"impact": review.impact} if review.impact else {})


def _segment_name(payload: Any, made_from: Any) -> str:
    return str(payload.get("name") or (made_from or {}).get("name") or payload["id"])
