"""Finds change requests that a caller may read."""

from collections.abc import Sequence

from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast

from flagadmin.core.db.lookups import find_best_matches
from groups.access import Caller
from releases.models import ChangeRequest

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
    readable = caller.readable_projects
    if readable is not None:
        requests = requests.filter(project__in=readable)
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
