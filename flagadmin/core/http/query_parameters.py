"""Reads parameters of a query string that are true or false, or a keyword. Empty ones count as absent."""

from rest_framework.request import Request

from flagadmin.core.errors import ValidationError

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": False}


def read_boolean(request: Request, name: str) -> bool:
    """False if it is absent. Raises ValidationError for anything but true, false, 1 and 0."""
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
