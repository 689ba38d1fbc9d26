"""Marks of open and scheduled requests on the pages, forms and rows of the flags and segments that they change."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, QuerySet
from django.urls import reverse

from groups.access import Caller
from releases.models import Change, ChangeRequest
from releases.requests.conflicts import find_conflicting, say_change
from releases.requests.queries import UNDECIDED

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
    changes = changes.filter(request__state__in=UNDECIDED)
    if caller.readable_projects is not None:
        changes = changes.filter(request__project__in=caller.readable_projects)
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
