"""Validation rules for tags and their types, used by the API, the console, the admin site and the import."""

from collections.abc import Iterator

from flagadmin.core.errors import Problem, choices, join_path
from projects.models import TagType
from projects.rules import COLOR, name_problems
from projects.strategies.known_names import KnownNames

MAX_TAG_TYPE_LENGTH = 50


def tag_type_problems(tag_type: TagType) -> Iterator[Problem]:
    # A tag type of an earlier version may have such a name, and can be edited.
    reserved = ("validate",) if tag_type._state.adding else ()
    yield from name_problems(tag_type.name, shortest=2, reserved=reserved)
    if len(tag_type.name) > MAX_TAG_TYPE_LENGTH:
        yield Problem("name", f"must have at most {MAX_TAG_TYPE_LENGTH} characters")
    if tag_type.color and not COLOR.match(tag_type.color):
        yield Problem("color", f'"{tag_type.color}" is not a color. Use the form #FFFFFF')
    if tag_type.icon and len(tag_type.icon) > 255:
        yield Problem("icon", "must have at most 255 characters")


MIN_LENGTH, MAX_LENGTH = 2, 50


def tag_problems(
    tag_type: str,
    value: str,
    path: str,
    *,
    known_names: KnownNames,
    names: tuple[str, str] = ("type", "value"),
) -> Iterator[Problem]:
    """Problems of a tag. ``names`` are its members' names in the body. Spaces are significant."""
    if tag_type not in known_names.tag_types:
        known = choices(known_names.tag_types)
        yield Problem(join_path(path, names[0]), f"tag type {tag_type} not found. Available: {known}")
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH:
        yield Problem(
            join_path(path, names[1]),
            f'Tag "{value[:MAX_LENGTH]}": use {MIN_LENGTH} to {MAX_LENGTH} characters',
        )
