"""A context field as the API shows it and as events keep it."""

from typing import Any

from flagadmin.http.timestamps import iso
from projects.models import ContextField

Document = dict[str, Any]


def context_field_document(field: ContextField) -> Document:
    document = {
        "name": field.name,
        "description": field.description,
        "stickiness": field.stickiness,
        "sortOrder": field.sort_order,
        "legalValues": field.legal_values,
        "createdAt": iso(field.created_at),
    }
    return document | ({"project": field.project_id} if field.project_id else {})
