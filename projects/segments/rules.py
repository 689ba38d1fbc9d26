"""Validation rules for segments, used by the API, the console, the admin site and the import.

Rules of the URL that a list is kept in step with: what may be set, and how an answer is read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cryptography.fernet import InvalidToken

from flagadmin.core.errors import Problem, ValidationError
from flagadmin.core.http.json_bodies import Bounds, read_json
from flagadmin.core.http.outside import is_url
from playground.engine.definitions import ConstraintDefinition
from projects.models import ListSource, Segment
from projects.rules import Limits
from projects.segments.lists import (
    DEFAULT_FIELD,
    SentList,
    decode,
    find_list,
    read_csv,
    read_lines,
    read_values,
)
from projects.strategies.constraint_rules import constraints_problems

MAX_SEGMENT_NAME_LENGTH = 255


def segment_problems(
    segment: Segment, *, legal_values: Mapping[str, frozenset[str]], limits: Limits
) -> Iterator[Problem]:
    """Problems of a segment. ``legal_values`` contains only context fields that have legal values."""
    if not segment.name.strip():
        yield Problem("name", "a name is required")
    elif len(segment.name) > MAX_SEGMENT_NAME_LENGTH:
        yield Problem("name", f"must have at most {MAX_SEGMENT_NAME_LENGTH} characters")
    listed = find_list(segment.constraints)
    if len(listed) > limits.segment_list:
        yield Problem(
            "constraints[0].values", f"must have at most {limits.segment_list:,} values, not {len(listed):,}"
        )
        return
    if (count := count_values(segment.constraints) - len(listed)) > limits.segment_values:
        yield make_too_many_problem(count, limits)
        return
    yield from constraints_problems(
        segment.constraints,
        "constraints",
        legal_values=legal_values,
        limits=replace(limits, constraint_values=limits.segment_list),
    )


def typed_problems(
    constraints: Sequence[ConstraintDefinition], stored: Sequence[ConstraintDefinition], limits: Limits
) -> Iterator[Problem]:
    """Problems of constraints that were entered in place of the stored ones, rather than uploaded."""
    count, listed = count_values(constraints), find_list(constraints)
    if listed == find_list(stored):
        count -= len(listed)
    if count > limits.segment_values:
        yield make_too_many_problem(count, limits)


def make_too_many_problem(count: int, limits: Limits) -> Problem:
    message = f"must have at most {limits.segment_values:,} values in all, not {count:,}."
    return Problem("constraints", f"{message} Upload a list for up to {limits.segment_list:,}.")


def count_values(constraints: Iterable[ConstraintDefinition]) -> int:
    return sum(len(constraint["values"]) for constraint in constraints)


Format = ListSource.Format
MIN_MINUTES, MAX_MINUTES = 15, 1440
MAX_URL_LENGTH = 2_000
HIDDEN_QUERY = "?…"


def source_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    if len(values["url"]) > MAX_URL_LENGTH:
        yield Problem("url", f"must have at most {MAX_URL_LENGTH:,} characters")
    elif not is_url(values["url"]):
        yield Problem("url", "must be a URL like https://example.com/beta.txt, without a user")
    if values["format"] not in Format.values:
        yield Problem("format", f"must be one of {', '.join(Format.values)}")
    if not MIN_MINUTES <= values["minutes"] <= MAX_MINUTES:
        yield Problem("intervalMinutes", f"must be {MIN_MINUTES} to {MAX_MINUTES:,} minutes")
    if values["column"] and values["format"] == Format.LINES:
        yield Problem("column", "must be empty for one value per line")


def show_url(source: ListSource) -> str:
    """The URL without its query, which may have a secret; "" if it was encrypted with a lost SECRET_KEY."""
    try:
        address, separator, _ = source.url.partition("?")
    except InvalidToken:
        return ""
    return address + HIDDEN_QUERY if separator else address


def read_answer(body: bytes, source: ListSource, field: str) -> SentList:
    """The list in an answer. ``field``: that of the segment, "" without one. Raises ValidationError."""
    limits = Limits.from_settings()
    if source.format == Format.JSON:
        return read_values(_list_values(body, source.column, limits), limits)
    if source.format == Format.CSV:
        return read_csv(decode(body), limits, column=source.column, field=field or DEFAULT_FIELD)
    return read_lines(decode(body), limits)


def _list_values(body: bytes, member: str, limits: Limits) -> Iterator[str]:
    """The values of ``[…]`` or ``{"values": […]}``: texts and whole numbers, or objects with them in a member."""
    bounds = Bounds(items=limits.segment_list, values=20 * limits.segment_list)
    document = read_json(body, bounds)
    items = document.get("values") if isinstance(document, dict) else document
    if not isinstance(items, list):
        raise ValidationError.at("values", "must be a list, or a list in the member values of an object")
    for index, item in enumerate(items):
        value = item.get(member) if member and isinstance(item, dict) else item
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise ValidationError.at(f"values[{index}]", "must be a text or a whole number")
        yield str(value)
