"""Ids of people, groups and roles as they stand in a path."""

from flagadmin.errors import ValidationError

_LARGEST = 2**63 - 1


def path_id(text: str, name: str = "id") -> int:
    """A positive whole number. Raises ValidationError for anything else: 400, as the specification has it."""
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:20]) <= _LARGEST:
        raise ValidationError.at(name, f"{text[:100]} is not an id; give a whole number.")
    return int(text)
