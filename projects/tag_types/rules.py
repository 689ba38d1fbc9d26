"""Validation rules for tag types, used by the API, the console, the admin site and the import."""

from collections.abc import Iterator

from flagadmin.core.errors import Problem
from projects.models import TagType
from projects.rules import COLOR, name_problems

MAX_TAG_TYPE_LENGTH = 50


def tag_type_problems(tag_type: TagType) -> Iterator[Problem]:
    # One of an earlier version may have such a name, and can be edited.
    reserved = ("validate",) if tag_type._state.adding else ()
    yield from name_problems(tag_type.name, shortest=2, reserved=reserved)
    if len(tag_type.name) > MAX_TAG_TYPE_LENGTH:
        yield Problem("name", f"must have at most {MAX_TAG_TYPE_LENGTH} characters")
    if tag_type.color and not COLOR.match(tag_type.color):
        yield Problem("color", f'"{tag_type.color}" is not a color. Use the form #FFFFFF')
    if tag_type.icon and len(tag_type.icon) > 255:
        yield Problem("icon", "must have at most 255 characters")
