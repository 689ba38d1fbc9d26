"""Finds change requests that a caller may read, those that wait for a caller, and marks of requests at their flags.

Change requests in the API's form, with the reference server's shape.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, F, OuterRef, Prefetch, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Cast, Coalesce
from django.urls import reverse

from flagadmin.core.db.lookups import find_best_matches
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from projects.models import ProjectEnvironment
from releases.changes import KINDS
from releases.models import Change, ChangeRequest, ReleasePlan, Review, Schedule
from releases.plans.queries import UNFINISHED
from releases.requests.approvals import find_strictest
from releases.requests.approvers import may_approve
from releases.requests.conflicts import find_conflict, find_conflicting, find_schedule_conflicts, say_change
from releases.requests.lapses import find_lapses, find_origins
from releases.targets import StoredFlags

State = ChangeRequest.State
UNDECIDED = (State.IN_REVIEW, State.APPROVED, State.SCHEDULED)
"""Sent, and neither applied nor ended."""
CLOSED = (State.APPLIED, State.CANCELLED, State.REJECTED)
MAX_LISTED = 300


def read_requests(project_id: str, caller: Caller) -> QuerySet[ChangeRequest]:
    """Finds the project's requests, newest first: all that have been sent, and the caller's drafts."""
    return visible_requests(caller).filter(project=project_id)


def visible_requests(caller: Caller) -> QuerySet[ChangeRequest]:
    """The requests of readable projects, newest first, with the rows for their documents."""
    requests = ChangeRequest.objects.exclude(~by(caller), state=State.DRAFT).order_by("-id")
    requests = requests.filter(caller.match_readable("project"))
    requests = requests.defer("summary").select_related("schedule")
    return requests.prefetch_related("changes", "reviews", "comments")


def search_requests(caller: Caller, words: Sequence[str]) -> QuerySet[ChangeRequest]:
    """Searches requests by their title, author and number, as ``12`` or ``#12``."""
    requests = visible_requests(caller).prefetch_related(None).annotate(number=Cast("pk", TextField()))
    words = [word.removeprefix("#") or word for word in words]
    return find_best_matches(requests, words, "title", also=["author_name", "number"])


def by(caller: Caller) -> Q:
    """Requests and reviews by the caller: a person under any earlier user name."""
    if caller.user is not None:
        return Q(author=caller.user)
    return Q(author=None, author_name=caller.name)


def count_states(project_id: str, caller: Caller) -> dict[str, int]:
    """The numbers of the project's sent requests, by the reference server's names."""
    rows = read_requests(project_id, caller).exclude(state=State.DRAFT).order_by()
    counts = dict(rows.values_list("state").annotate(number=Count("id")))
    return {
        "total": sum(counts.values()),
        "applied": counts.get(State.APPLIED, 0),
        "rejected": counts.get(State.REJECTED, 0),
        "reviewRequired": counts.get(State.IN_REVIEW, 0),
        "approved": counts.get(State.APPROVED, 0),
        "scheduled": counts.get(State.SCHEDULED, 0),
    }


Status = Schedule.Status
NONE = Q(pk__in=[])


def waiting_for(caller: Caller, requests: QuerySet[ChangeRequest]) -> QuerySet[ChangeRequest]:
    """The requests of others that the caller may approve and has not, and those that the caller may apply.

    One or two queries per environment, and a few for all approvals, of which only those count that have not lapsed.
    """
    undecided = requests.filter(state__in=(State.IN_REVIEW, State.APPROVED)).order_by()
    places = list(undecided.values_list("project_id", "environment_id").distinct())
    review, apply, enough = NONE, by(caller) & Q(required_approvals=0), NONE
    most = _read_most_needed({project for project, _ in places})
    for project, environment in places:
        here = Q(project=project, environment=environment)
        if may_approve(project, environment, caller):
            review |= here
        if caller.can(Permission.APPLY_CHANGE_REQUEST, project=project, environment=environment):
            apply |= here
            enough |= here & Q(approvals__gte=most.get((project, environment), 0))
    approved = Review.objects.filter(by(caller), approved=True)
    review &= ~Q(pk__in=approved.values("request")) & ~by(caller)
    given = Review.objects.filter(request=OuterRef("pk"), approved=True).exclude(
        pk__in=_find_lapsed(undecided)
    )
    numbers = given.order_by().values("request").annotate(number=Count("pk")).values("number")
    counted = requests.annotate(approvals=Coalesce(Subquery(numbers), 0))
    is_enough = Q(approvals__gte=F("required_approvals"))
    approved_by_now = Q(apply & is_enough | review & ~is_enough, state=State.APPROVED)
    return counted.filter(Q(review | enough, state=State.IN_REVIEW) | approved_by_now)


def _find_lapsed(undecided: QuerySet[ChangeRequest]) -> list[int]:
    """The ids of approvals that do not count."""
    reviews = Review.objects.select_related("author").defer("impact", "fingerprint")
    given = Review.objects.filter(approved=True, request__in=undecided.values("pk")).values("request")
    requests = ChangeRequest.objects.filter(pk__in=given).select_related("author")
    requests = requests.defer("impact", "summary", "fingerprint", "moved")
    return list(find_lapses(list(requests.prefetch_related(Prefetch("reviews", reviews)))))


def _read_most_needed(projects: Collection[str]) -> dict[tuple[str, str], int]:
    """The most approvals that a request may need in each guarded environment."""
    links = ProjectEnvironment.objects.needing_requests().filter(project__in=projects)
    return {(link.project_id, link.environment_id): find_strictest(link) for link in links}


def read_drafts(caller: Caller) -> QuerySet[ChangeRequest]:
    return visible_requests(caller).filter(by(caller), state=State.DRAFT)


def scheduled_next(caller: Caller) -> QuerySet[ChangeRequest]:
    """Scheduled requests, the next one first."""
    scheduled = visible_requests(caller).filter(state=State.SCHEDULED, schedule__status=Status.PENDING)
    return scheduled.order_by("schedule__at", "schedule__id")


def suspended(caller: Caller) -> QuerySet[ChangeRequest]:
    """Requests that failed at their time: the caller's own or scheduled by them; for admins, all."""
    requests = visible_requests(caller).filter(state=State.SCHEDULED)
    requests = requests.filter(schedule__status__in=(Status.SUSPENDED, Status.FAILED))
    return requests if caller.is_admin else requests.filter(by(caller) | Q(schedule__by=caller.id))


MAX_MARKS = 200


class Mark(NamedTuple):
    """A mark on a flag, or on the segment with this id. ``at``: when it is applied automatically, if scheduled.

    ``is_stuck``: it no longer fits the stored state.
    """

    flag: str
    segment: int
    environment: str
    number: int
    url: str
    sentence: str
    state: str
    at: datetime | None
    is_stuck: bool


def find_marks(caller: Caller, flags: Collection[str], environment: str = "") -> Iterator[Mark]:
    """Sent proposals for these flags, the next one first. Three queries, and about eight for each environment.

    Proposals from a project that a flag has left no longer apply to it.
    """
    changes = Change.objects.filter(feature__in=list(flags), request__project__flags__name=F("feature"))
    if environment:
        changes = changes.filter(request__environment=environment)
    return _read_marks(caller, changes)


def find_segment_marks(caller: Caller, segments: Collection[int]) -> Iterator[Mark]:
    """The same for segments."""
    return _read_marks(caller, Change.objects.filter(feature="", payload__id__in=list(segments)))


def _read_marks(caller: Caller, changes: QuerySet[Change]) -> Iterator[Mark]:
    changes = changes.filter(caller.match_readable("request__project"), request__state__in=UNDECIDED)
    ordered = list(
        changes.select_related("request__schedule").order_by("request__schedule__at", "pk")[:MAX_MARKS]
    )
    stuck = find_conflicting(ordered)
    for change in ordered:
        request = change.request
        scheduled = request.state == ChangeRequest.State.SCHEDULED
        yield Mark(
            change.feature,
            0 if change.feature else change.payload["id"],
            request.environment_id,
            request.pk,
            reverse("change-request", args=[request.project_id, request.pk]),
            say_change(request, change),
            request.state,
            request.schedule.at if scheduled else None,
            change.pk in stuck,
        )


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
        **_describe(request),
        "minApprovals": request.required_approvals,
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
        "stateTimestamps": request.state_times,
        **({"impact": request.impact} if request.impact else {}),
        **({"moved": request.moved} if request.moved else {}),
    }


def found_document(request: ChangeRequest) -> Document:
    """The form for search results: its subject, without its changes."""
    changes = list(request.changes.all())
    who: Document = {"username": request.author_name, "imageUrl": ""}
    if request.author_id is not None:
        who["id"] = request.author_id
    return {
        **_describe(request),
        "features": list(dict.fromkeys(change.feature for change in changes if change.feature)),
        "segments": [
            _segment_name(change.payload, change.made_from)
            for change in changes
            if KINDS[change.action].of_segment
        ],
        "createdBy": who,
    }


def _describe(request: ChangeRequest) -> Document:
    document: Document = {"id": request.pk, **({"title": request.title} if request.title else {})}
    document |= {"environment": request.environment_id, "project": request.project_id}
    document |= {"createdAt": iso(request.created_at), "state": request.state}
    if request.state == State.SCHEDULED:
        document["schedule"] = _schedule(request.schedule)
    return document


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


def find_oldest_needed() -> Iterator[datetime]:
    """The beginnings of the oldest open request and the oldest unfinished plan. Two queries."""
    requests = ChangeRequest.objects.exclude(state__in=CLOSED)
    plans = ReleasePlan.objects.filter(state__in=UNFINISHED)
    for rows in (requests, plans):
        yield from rows.order_by("created_at").values_list("created_at", flat=True)[:1]
