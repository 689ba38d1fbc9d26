"""Context fields, segments, strategy types and tag types as the API shows them and as events keep them."""

from typing import Any

from flagadmin.http.timestamps import iso
from projects.models import ContextField, Segment, StrategyType, TagType

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


def segment_document(segment: Segment) -> Document:
    document = {
        "id": segment.pk,
        "name": segment.name,
        "description": segment.description,
        "constraints": segment.constraints,
        "createdBy": segment.created_by,
        "createdAt": iso(segment.created_at),
    }
    return document | ({"project": segment.project_id} if segment.project_id else {})


def strategy_type_document(strategy_type: StrategyType) -> Document:
    """``title`` is what people gave a custom type; built-in ones have a display name alone."""
    return {
        "name": strategy_type.name,
        "title": None if strategy_type.built_in else strategy_type.title or None,
        "displayName": strategy_type.title or None,
        "description": strategy_type.description or None,
        "editable": not strategy_type.built_in,
        "deprecated": strategy_type.deprecated,
        "parameters": strategy_type.parameters,
    }


def tag_type_document(tag_type: TagType) -> Document:
    return {
        "name": tag_type.name,
        "description": tag_type.description,
        "icon": tag_type.icon,
        "color": tag_type.color,
    }
