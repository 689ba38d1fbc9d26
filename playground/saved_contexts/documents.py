"""Builds the JSON document of a saved context, for API responses and audit events."""

from typing import Any

from flagadmin.http.timestamps import iso
from playground.models import SavedContext

Document = dict[str, Any]


def saved_context_document(saved: SavedContext) -> Document:
    return {
        "id": saved.pk,
        "name": saved.name,
        "project": saved.project_id,
        "context": saved.context,
        "note": saved.note,
        "expectations": saved.expectations,
        "createdBy": saved.created_by,
        "createdAt": iso(saved.created_at),
        "updatedBy": saved.updated_by,
        "updatedAt": iso(saved.updated_at),
    }
