"""Finds what has moved a request since it was approved: the changes of others near it."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from groups.models import User
from projects.models import Strategy
from releases.models import ChangeRequest
from releases.models.requests import full_name
from releases.requests.impact import add_near, list_touched_flags

MAX_CAUSES = 3
CHANGES = "^(feature-(environment|strategy|dependency|archived|revived|imported|promoted|reverted)|segment-)"
"""Types of events that may change what flags return."""


class Cause(NamedTuple):
    """The action of somebody, in a sentence without its subject."""

    name: str
    about: str
    at: datetime


def find_causes(request: ChangeRequest, since: datetime) -> list[Cause]:
    """The latest changes of its flags, those near them and their segments. Six queries."""
    names = add_near(list_touched_flags(request))
    here = Q(environment=request.environment_id) | Q(environment=None)
    segments = Strategy.objects.filter(flag__name__in=names, environment=request.environment_id)
    used = [key for key in segments.values_list("segments", flat=True).distinct() if key is not None]
    changed = Q(here, feature__in=names) | Q(type=EventType.SEGMENT_UPDATED, after__id__in=used)
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
