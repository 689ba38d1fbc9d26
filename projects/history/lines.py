"""Audit events as NDJSON: one JSON document per line, the oldest first, continued from a cursor."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.http import HttpResponse

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import Problem, ValidationError
from groups.access import Caller
from projects.history.queries import hide_projects, narrow_events, readable_events
from projects.history.serializers import EventLinesQuery, make_event_record
from projects.history.settled import read_settled_id

MEDIA_TYPE = "application/x-ndjson"
NEXT = "X-Next-Cursor"


def write_lines(events: Iterable[AuditEvent]) -> bytes:
    return b"".join(orjson.dumps(make_event_record(event)) + b"\n" for event in events)


def answer_lines(caller: Caller, data: Mapping[str, Any]) -> HttpResponse:
    """Events after the one in ``cursor``, up to the last before which no other can appear. Raises ValidationError."""
    query = EventLinesQuery(data=data)
    query.is_valid(raise_exception=True)
    if query.validated_data["offset"]:
        raise ValidationError.of([Problem("offset", "cannot be used with a cursor")])
    cursor, limit = query.validated_data.get("cursor"), query.validated_data["limit"]
    if cursor is None:
        raise ValidationError.of([Problem("cursor", "must be a number, 0 for the oldest event")])
    events = narrow_events(readable_events(caller), query.filter())
    page = list(events.filter(pk__gt=cursor, pk__lte=read_settled_id()).order_by("pk")[:limit])
    answer = HttpResponse(write_lines(hide_projects(page, caller)), content_type=MEDIA_TYPE)
    answer[NEXT] = str(page[-1].pk if page else cursor)
    return answer
