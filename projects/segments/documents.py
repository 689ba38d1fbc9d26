"""Segments as audit events have them, and the way back to whole lists."""

from datetime import datetime

from django.db import connection

from flagadmin.core.document import Document
from projects.definition_parts import read_segments
from projects.models import Segment
from projects.segments.cut_lists import cut_lists, is_cut


def event_document(segment: Segment) -> Document:
    return cut_lists(segment.document())


def restore_lists(document: Document, at: datetime) -> Document | None:
    """The document of an event with whole lists, from the version of this moment. None if there is none."""
    if not is_cut(document):
        return document
    with connection.cursor() as cursor:
        past = read_segments(cursor, [document["id"]], at).get(document["id"])
    return None if past is None else {**document, "constraints": past["constraints"]}
