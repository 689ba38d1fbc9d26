"""Change requests as the API shows them, in the reference server's shape."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from releases.changes import KINDS
from releases.models import Change, ChangeRequest, Schedule
from releases.requests.conflicts import find_conflict
from releases.requests.queries import CLOSED
from releases.requests.schedule_conflicts import find_schedule_conflicts
from releases.targets import StoredFlags


class Obstacle(NamedTuple):
    """What stands against a change: why it no longer fits, and scheduled requests that change the same."""

    conflict: str = ""
    scheduled: Sequence[Document] = ()


def request_document(request: ChangeRequest) -> Document:
    """Makes the document, with what stands against each change as long as the request is open."""
    [document] = make_request_documents([request])
    return document


def make_request_documents(requests: Sequence[ChangeRequest]) -> list[Document]:
    """The same of many: what their changes are about is read once for each environment."""
    proposed = [(request, list(request.changes.all())) for request in requests]
    obstacles = _find_obstacles(each for each in proposed if each[0].state not in CLOSED)
    return [_make_document(request, changes, obstacles) for request, changes in proposed]


def _find_obstacles(requests: Iterable[tuple[ChangeRequest, list[Change]]]) -> dict[int, Obstacle]:
    """Finds what stands against each change, by its id."""
    places = defaultdict[tuple[str, str], list[tuple[ChangeRequest, Change]]](list)
    for request, changes in requests:
        places[request.project_id, request.environment_id] += [(request, change) for change in changes]
    obstacles = {}
    for place, proposed in places.items():
        changes = [change for _, change in proposed]
        stored = StoredFlags(*place, {change.feature for change in changes if change.feature})
        scheduled = find_schedule_conflicts(*place, changes)
        for (request, change), meeting in zip(proposed, scheduled, strict=True):
            obstacles[change.pk] = Obstacle(find_conflict(request, change, stored), meeting)
    return obstacles


def _make_document(
    request: ChangeRequest, changes: Iterable[Change], obstacles: Mapping[int, Obstacle]
) -> Document:
    features: dict[str, list[Document]] = {}
    segments: list[Document] = []
    for change in changes:
        conflict, meeting = obstacles.get(change.pk, Obstacle())
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
