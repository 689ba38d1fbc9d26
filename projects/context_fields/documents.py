"""Builds the JSON document of a context field, for API responses and audit events."""

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.models import ContextField


def make_context_field_document(field: ContextField) -> Document:
    document = {
        "name": field.name,
        "description": field.description,
        "stickiness": field.stickiness,
        "sortOrder": field.sort_order,
        "legalValues": field.legal_values,
        "createdAt": iso(field.created_at),
    }
    return document | ({"project": field.project_id} if field.project_id else {})
