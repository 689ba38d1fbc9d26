"""Builds the JSON document of a saved context, for API responses and audit events."""

from collections.abc import Iterable, Mapping
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from playground.models import SavedContext


def make_saved_context_document(saved: SavedContext) -> Document:
    return {
        "id": saved.pk,
        "name": saved.name,
        "project": saved.project_id,
        "context": saved.context,
        "note": saved.note,
        "expectations": make_expectation_records(saved, saved.expectations),
        "createdBy": saved.created_by,
        "createdAt": iso(saved.created_at),
        "updatedBy": saved.updated_by,
        "updatedAt": iso(saved.updated_at),
    }


def make_expectation_records(
    saved: SavedContext, expectations: Iterable[Mapping[str, Any]]
) -> list[Document]:
    """Expectations of a saved context, each with the project that enforces it, or null."""
    return [
        {**expectation, "enforcedIn": saved.enforcing_project(expectation["flag"])}
        for expectation in expectations
    ]
