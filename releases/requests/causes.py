"""Finds changes by others near a request or plan that alter its effect after approval."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Q

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from groups.models import User
from projects.models import Strategy
from releases.models import ChangeRequest
from releases.models.requests import full_name
from releases.requests.impact import (
    add_near,
    list_named_segments,
    list_planned_segments,
    list_touched_flags,
)

MAX_CAUSES = 3
CHANGES = (
    "^(feature-(environment|strategy|dependency|archived|revived|imported|promoted|reverted|updated)|segment-"
    "|default-strategy|project-updated|release-plan|milestone)"
)
"""Types of events that may change what flags return."""


DEFAULTS = (EventType.DEFAULT_STRATEGY_UPDATED, EventType.PROJECT_UPDATED)
"""Types of events that may change the strategy that a flag gets when it is turned on."""


class Cause(NamedTuple):
    """An action of a user, in a sentence without its subject."""

    name: str
    about: str
    at: datetime

    @property
    def sentence(self) -> str:
        return (
            f"{self.name} {self.about} at {self.at.astimezone(UTC):%H:%M} UTC on {self.at.day} {self.at:%b}."
        )


def find_causes(request: ChangeRequest, since: datetime) -> list[Cause]:
    """The latest changes of its flags, those near them, their segments and the project's defaults. Six queries."""
    changes = list(request.changes.all())
    segments = {*list_named_segments(changes), *list_planned_segments(request, changes)}
    names = list_touched_flags(request, changes)
    return find_causes_near(request.project_id, request.environment_id, names, segments, since)


def find_causes_near(
    project: str, environment: str, flags: Collection[str], segments: Collection[int], since: datetime
) -> list[Cause]:
    """The latest changes that affect these flags' results, with these segments and those that they use."""
    names = add_near(flags)
    here = Q(environment=environment) | Q(environment=None)
    rows = Strategy.objects.filter(flag__name__in=names, environment=environment)
    used = {key for key in rows.values_list("segments", flat=True).distinct() if key is not None}
    changed = Q(here, feature__in=names)
    changed |= Q(type=EventType.SEGMENT_UPDATED, after__id__in=list(used.union(segments)))
    changed |= Q(here, project=project, type__in=DEFAULTS)
    events = AuditEvent.objects.filter(changed, created_at__gt=since, type__regex=CHANGES)
    latest = list(events.newest_first()[:MAX_CAUSES])
    people = User.objects.in_bulk({event.actor_id for event in latest if event.actor_id})
    return [
        Cause(
            full_name(people.get(event.actor_id or 0), event.actor_name),
            make_sentence(event),
            event.created_at,
        )
        for event in latest
    ]


def explain_causes(request: ChangeRequest) -> list[str]:
    """A sentence for each change since it was first approved or, without approvals, sent: author, action and time."""
    times = [review.created_at for review in request.reviews.all() if review.approved]
    sent = request.state_times.get(ChangeRequest.State.IN_REVIEW)
    since = min(times, default=datetime.fromisoformat(sent) if sent else request.created_at)
    return [cause.sentence for cause in find_causes(request, since)]
