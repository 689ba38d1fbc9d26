"""Reads ids, booleans and keywords from paths and query strings."""

import re

from rest_framework.request import Request

from flagadmin.core.errors import NotFound, ValidationError

_NUMBER = re.compile(r"-?[0-9]+")
_MAX_ID = 2**63 - 1


def is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def read_id(text: str) -> int | None:
    return int(text) if is_id(text) else None


def path_id(text: str, kind: str, name: str = "id") -> int:
    """The id as an integer. Raises ValidationError if it is not one, NotFound if nothing can have it.

    ``kind`` names the object (``Segment``), ``name`` the parameter.
    """
    if not _NUMBER.fullmatch(text):
        raise ValidationError.at(name, f"{text[:100]} is not an id. Ids are whole numbers.")
    if len(text) > 20 or not 0 < int(text) <= _MAX_ID:
        raise NotFound(f"{kind} with id {text[:100]} not found.")
    return int(text)


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": False}


def read_boolean(request: Request, name: str) -> bool:
    """Reads a boolean; False if it is absent. Raises ValidationError for values other than true, false, 1 and 0."""
    text = request.query_params.get(name, "")
    if text not in _BOOLEANS:
        raise ValidationError.at(name, f'must be true or false, not "{text[:100]}"')
    return _BOOLEANS[text]


def has_keyword(request: Request, name: str, keyword: str) -> bool:
    """Whether the parameter is the keyword. Raises ValidationError for any other value."""
    text = request.query_params.get(name, "")
    if text not in ("", keyword):
        raise ValidationError.at(name, f'must be {keyword} or absent, not "{text[:100]}"')
    return text == keyword
