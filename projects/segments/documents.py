"""Builds the JSON document of a segment, for API responses and audit events."""

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.models import Segment


def make_segment_document(segment: Segment) -> Document:
    document = {
        "id": segment.pk,
        "name": segment.name,
        "description": segment.description,
        "constraints": segment.constraints,
        "createdBy": segment.created_by,
        "createdAt": iso(segment.created_at),
    }
    return document | ({"project": segment.project_id} if segment.project_id else {})
