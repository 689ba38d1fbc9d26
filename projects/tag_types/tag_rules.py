"""Validation rules for tags, used by the API, the console and the import."""

from collections.abc import Iterator

from flagadmin.core.errors import Problem, join_path
from flagadmin.core.wording import choices
from projects.strategies.known_names import KnownNames

MIN_LENGTH, MAX_LENGTH = 2, 50


def tag_problems(
    tag_type: str,
    value: str,
    path: str,
    *,
    known_names: KnownNames,
    names: tuple[str, str] = ("type", "value"),
) -> Iterator[Problem]:
    """Problems of a tag. ``names`` are the names of its members in the body. Spaces count and are kept."""
    if tag_type not in known_names.tag_types:
        known = choices(known_names.tag_types)
        yield Problem(join_path(path, names[0]), f"tag type {tag_type} not found. Available: {known}")
    if not MIN_LENGTH <= len(value) <= MAX_LENGTH:
        yield Problem(
            join_path(path, names[1]),
            f'Tag "{value[:MAX_LENGTH]}": use {MIN_LENGTH} to {MAX_LENGTH} characters',
        )
