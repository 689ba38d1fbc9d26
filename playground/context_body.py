"""Reads the context of a request body, reporting all problems at once. Knows no framework and no database."""

from collections.abc import Iterator, Mapping, Sized
from typing import Any

from flagadmin.core.errors import Problem
from playground.engine import literals
from playground.engine.context import TOP_LEVEL
from playground.engine.literals import string_of, to_text

MAX_FIELDS = 1_000
MAX_TEXT_LENGTH = 100_000  # characters of a value or name
Body = dict[str, Any]


def read_context(body: Body, problems: list[Problem]) -> Body:
    """The coerced context of a body. Adds its problems to ``problems``."""
    if "context" not in body:
        problems.append(Problem("context", "is required; it may be empty: {}"))
        return {}
    context = body["context"]
    if not isinstance(context, dict):
        problems.append(Problem("context", f"must be an object, not {describe_kind(context)}"))
        return {}
    if problem := find_size_problem(context, MAX_FIELDS):
        problems.append(Problem("context", problem))
        return {}
    read: Body = {}
    for key, value in context.items():
        if key == "properties":
            if value is not None:
                read[key] = _read_properties(value, problems)
        elif (text := _read_text(value, "context", key, problems)) is not None:
            read[key] = text
    problems.extend(_list_time_problems(read))
    return read


def _read_properties(value: Any, problems: list[Problem]) -> dict[str, str]:
    if not isinstance(value, dict):
        problems.append(Problem("context.properties", f"must be an object, not {describe_kind(value)}"))
        return {}
    if problem := find_size_problem(value, MAX_FIELDS):
        problems.append(Problem("context.properties", problem))
        return {}
    texts: dict[str, str] = {}
    for key, item in value.items():
        if (text := _read_text(item, "context.properties", key, problems)) is not None:
            texts[key] = text
    return texts


def _read_text(value: Any, path: str, key: str, problems: list[Problem]) -> str | None:
    """The text of a scalar, None for null. Adds its problems to ``problems``."""
    if type(value) is str and len(value) <= MAX_TEXT_LENGTH:  # the usual case
        return to_text(value)
    if isinstance(value, dict | list):
        is_own = path == "context" and key not in TOP_LEVEL
        hint = "; put nested values into properties as strings" if is_own else ""
        problems.append(Problem(f"{path}.{key}", f"must be a string, not {describe_kind(value)}{hint}"))
        return None
    if problem := find_length_problem(value):
        problems.append(Problem(f"{path}.{key}", problem))
        return None
    return string_of(value)


def find_size_problem(sent: Sized, limit: int) -> str | None:
    """The problem of too many entries; None if there is none."""
    return f"must have at most {limit:,} entries; this has {len(sent):,}" if len(sent) > limit else None


def find_length_problem(value: Any) -> str | None:
    """The problem of a text that is too long; None if there is none."""
    if isinstance(value, str) and len(value) > MAX_TEXT_LENGTH:
        return f"must have at most {MAX_TEXT_LENGTH:,} characters; this has {len(value):,}"
    return None


def _list_time_problems(context: Mapping[str, Any]) -> Iterator[Problem]:
    time = context.get("currentTime")
    if time is not None and (message := find_time_problem(time)):
        yield Problem("context.currentTime", message)


def find_time_problem(text: str) -> str:
    """The problem of a currentTime; "" if it is valid."""
    if literals.read_instant(text) is not None:
        return ""
    return f'must be a date and time with its offset, for example 2026-11-21T09:00:00Z, not "{text}"'


def describe_kind(value: Any) -> str:
    """A JSON value of the wrong type in the form of error messages: `a list`, `"x"`, `5`."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f'"{value[:80]}"'
    return to_text(value)
