"""Builds the JSON document of a tag type, for API responses and audit events."""

from flagadmin.core.document import Document
from projects.models import TagType


def tag_type_document(tag_type: TagType) -> Document:
    return {
        "name": tag_type.name,
        "description": tag_type.description,
        "icon": tag_type.icon,
        "color": tag_type.color,
    }
