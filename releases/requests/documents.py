"""Change requests in the API's form, with the reference server's shape."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from releases.changes import KINDS
from releases.models import Change, ChangeRequest, Schedule
from releases.requests.conflicts import find_conflict, find_schedule_conflicts
from releases.requests.lapses import find_lapses, find_origins
from releases.requests.queries import CLOSED
from releases.targets import StoredFlags


class Obstacle(NamedTuple):
    """Obstacles to a change: why it no longer fits, and scheduled requests that change the same part."""

    conflict: str = ""
    scheduled: Sequence[Document] = ()


class Standing(NamedTuple):
    """Why reviews do not count, and how the reviewers' accounts came from the author, by the ids of the reviews."""

    lapses: Mapping[int, str]
    origins: Mapping[int, str]


def request_document(request: ChangeRequest) -> Document:
    """The document, with the obstacles to each change while the request is open."""
    [document] = make_request_documents([request])
    return document


def make_request_documents(requests: Sequence[ChangeRequest]) -> list[Document]:
    """The same for many requests. Reads the flags of their changes once for each environment."""
    proposed = [(request, list(request.changes.all())) for request in requests]
    obstacles = _find_obstacles(each for each in proposed if each[0].state not in CLOSED)
    standing = Standing(
        find_lapses([request for request in requests if request.state not in CLOSED]), find_origins(requests)
    )
    return [_make_document(request, changes, obstacles, standing) for request, changes in proposed]


def _find_obstacles(requests: Iterable[tuple[ChangeRequest, list[Change]]]) -> dict[int, Obstacle]:
    """The obstacles to each change, by its id."""
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
    request: ChangeRequest,
    changes: Iterable[Change],
    obstacles: Mapping[int, Obstacle],
    standing: Standing,
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
        "approvals": [_review(review, standing) for review in reviews if review.approved],
        "rejections": [_review(review, standing) for review in reviews if not review.approved],
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
    """The form for search results: its subject, without its changes."""
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


def _review(review: Any, standing: Standing) -> Document:
    who: Document = {"username": review.author_name, "imageUrl": ""}
    if review.author_id is not None:
        who["id"] = review.author_id
    document = {"createdBy": who, "createdAt": iso(review.created_at)}
    if origin := standing.origins.get(review.pk):
        document["origin"] = origin
    if lapse := standing.lapses.get(review.pk):
        document["lapsed"] = lapse
    return document | ({"impact": review.impact} if review.impact else {})


def _segment_name(payload: Any, made_from: Any) -> str:
    return str(payload.get("name") or (made_from or {}).get("name") or payload["id"])
