"""Reads ids, which are whole numbers, from paths and other texts."""

import re

from flagadmin.core.errors import NotFound, ValidationError

_NUMBER = re.compile(r"-?[0-9]+")
_MAX_ID = 2**63 - 1


def is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def read_id(text: str) -> int | None:
    return int(text) if is_id(text) else None


def path_id(text: str, kind: str, name: str = "id") -> int:
    """The id as an integer. Raises ValidationError if it is not one, NotFound if nothing can have it.

    ``kind`` is what the id is of (``Segment``), ``name`` the parameter.
    """
    if not _NUMBER.fullmatch(text):
        raise ValidationError.at(name, f"{text[:100]} is not an id. Ids are whole numbers.")
    if len(text) > 20 or not 0 < int(text) <= _MAX_ID:
        raise NotFound(f"{kind} with id {text[:100]} not found.")
    return int(text)
