"""Sets and removes the URL that the list of a segment is kept in step with."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.transactions import transactional
from flagadmin.core.document import Document
from flagadmin.core.edit_conflicts import Expected, check_expected
from flagadmin.core.errors import InvalidOperation, ValidationError, check_problems
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from projects.models import ListSource, Segment
from projects.segments.actions import access_segment_for_update
from projects.segments.lists import OPERATOR, may_be_list
from projects.segments.source_rules import show_url, source_problems


def find_source(segment_id: int) -> ListSource | None:
    return ListSource.objects.filter(pk=segment_id).first()


def source_document(source: ListSource | None) -> Document:
    """What is set, for the API, events and edit conflicts; all members are null without a source."""
    return {
        "url": source and show_url(source),
        "format": source and source.format,
        "column": source and source.column,
        "intervalMinutes": source and source.minutes,
        "setBy": source and source.set_by_name,
        "setAt": source and iso(source.set_at),
    }


@transactional
def set_source(
    segment_id: int, values: Mapping[str, Any] | None, *, expected: Expected = None, caller: Caller
) -> None:
    """``values``: url, format, column, minutes; None removes the source. A URL as it is shown keeps its query.

    Lists are fetched with the rights of the caller. Raises NotFound, NoAccess, EditConflict, ValidationError, and
    InvalidOperation for tokens that belong to nobody.
    """
    segment = access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT)
    stored = find_source(segment_id)
    before = source_document(stored)
    check_expected(expected, before)
    if values is None:
        ListSource.objects.filter(pk=segment_id).delete()
        if stored:
            _record(segment, before, source_document(None), caller)
        return
    if caller.user is None:
        raise InvalidOperation("Only people and service accounts can set the source of a list.")
    if stored and before["url"] and values["url"] == before["url"]:
        values = {**values, "url": stored.url}
    check_problems(source_problems(values))
    if not may_be_list(segment.constraints):
        raise ValidationError.at("constraints[0].operator", f"must be {OPERATOR} for a list")
    now = timezone.now()
    source = ListSource(
        segment=segment, **values, set_by=caller.user, set_by_name=caller.name, set_at=now, due_at=now
    )
    source.save()
    _record(segment, before, source_document(source), caller)


@transactional
def fetch_soon(segment_id: int, *, caller: Caller) -> ListSource:
    """Makes the list due, so that it is fetched within seconds. Raises NotFound, also without a source; NoAccess."""
    access_segment_for_update(caller, segment_id, Permission.UPDATE_SEGMENT)
    source = get_or_404(ListSource.objects, "The list of this segment has no source.", pk=segment_id)
    source.due_at = timezone.now()
    source.save(update_fields=["due_at"])
    return source


def _record(segment: Segment, before: Document, after: Document, caller: Caller) -> None:
    record(
        Event(
            type=EventType.SEGMENT_LIST_SOURCE_UPDATED,
            project=segment.project_id,
            subject=segment.name,
            before=before,
            after={"id": segment.pk, **after},
        ),
        actor=caller,
    )
