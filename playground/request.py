"""Parses and validates the body of a playground request, reporting all problems at once.

The advanced playground: splits a context with several values into one context for each combination.

Every string in the context may have several values, separated by commas; each combination is a separate context, in
every environment.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

from django.utils.dateparse import parse_datetime

from flagadmin.core.errors import Problem, ValidationError, check_problems
from playground.context_body import Body, describe_kind, find_length_problem, find_size_problem, read_context
from playground.engine.literals import string_of, to_text

EVERY_PROJECT = "*"
MAX_ENVIRONMENTS, MAX_PROJECTS = 100, 10_000


@dataclass(frozen=True, slots=True)
class PlaygroundRequest:
    """A valid request. `projects` is None for all that the caller may read; `echo` is the `input` of the answer.

    `at` is another moment, None for now.
    """

    environments: list[str]
    projects: list[str] | None
    context: Body
    echo: Body
    at: datetime | None = None


def read_request(body: Any, *, several: bool = False) -> PlaygroundRequest:
    """Reads a body; ``several`` environments is the advanced form. Raises ValidationError with all problems.

    As in the reference, numbers and booleans in the context become strings and null means absent. The echo is the body
    after this coercion.
    """
    if not isinstance(body, dict):
        raise ValidationError(f"The body must be an object, not {describe_kind(body)}.")
    problems: list[Problem] = []
    environments = _read_environments(body, several, problems)
    projects = _read_projects(body.get("projects"), problems)
    context = read_context(body, problems)
    at = read_moment(body.get("at"), problems)
    check_problems(problems)
    echo = {key: value for key, value in body.items() if key != "projects" or value is not None}
    echo["context"] = context
    echo["environments" if several else "environment"] = environments if several else environments[0]
    if isinstance(echo.get("projects"), list):
        echo["projects"] = [to_text(project) for project in echo["projects"]]
    return PlaygroundRequest(environments, projects, context, echo, at)


def read_moment(value: Any, problems: list[Problem]) -> datetime | None:
    """Another moment, in UTC if it has no offset. Adds its problems to ``problems``."""
    if value is None or value == "":
        return None
    try:
        parsed = parse_datetime(value) if isinstance(value, str) else None
        at = parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        at = None
    if at is None:
        problems.append(Problem("at", 'must be a time such as "2026-11-21T14:03:00Z"'))
    return at


def _read_environments(body: Body, several: bool, problems: list[Problem]) -> list[str]:
    name = "environments" if several else "environment"
    value = body.get(name)
    if value is None:
        problems.append(Problem(name, "is required"))
        return []
    listed = value if several else [value]
    if not isinstance(listed, list):
        problems.append(Problem(name, f"must be a list of names, not {describe_kind(value)}"))
        return []
    if not listed:
        problems.append(Problem(name, "must name at least one environment"))
    if problem := find_size_problem(listed, MAX_ENVIRONMENTS):
        problems.append(Problem(name, problem))
        return []
    for index, item in enumerate(listed):
        path = f"{name}[{index}]" if several else name
        if string_of(item) is None:
            problems.append(Problem(path, f"must be a name, not {describe_kind(item)}"))
        elif problem := find_length_problem(item):
            problems.append(Problem(path, problem))
        elif not to_text(item):
            problems.append(Problem(path, "must not be empty"))
    return list(dict.fromkeys(to_text(item) for item in listed))


def _read_projects(value: Any, problems: list[Problem]) -> list[str] | None:
    if value is None or value == EVERY_PROJECT:
        return None
    if not isinstance(value, list):
        message = f'must be a list of project ids, or "*" for all you can read, not {describe_kind(value)}'
        problems.append(Problem("projects", message))
        return []
    if problem := find_size_problem(value, MAX_PROJECTS):
        problems.append(Problem("projects", problem))
        return []
    for index, item in enumerate(value):
        if string_of(item) is None:
            problems.append(Problem(f"projects[{index}]", f"must be a project id, not {describe_kind(item)}"))
        elif problem := find_length_problem(item):
            problems.append(Problem(f"projects[{index}]", problem))
    named = list(dict.fromkeys(to_text(item) for item in value))
    return None if EVERY_PROJECT in named else named


MAX_ANSWER = 20_000_000  # bytes


def list_invalid_properties(context: dict[str, Any]) -> list[str]:
    """Top-level keys whose value is not a string: ignored with a warning, as in the reference."""
    return [key for key, value in context.items() if key != "properties" and not isinstance(value, str)]


def split_context(context: dict[str, Any]) -> dict[str, list[str]]:
    """Each field's values. Merges properties into the top level (the later key wins); appName comes last."""
    fields: dict[str, list[str]] = {}
    for key, value in context.items():
        if key == "properties":
            fields.update((name, text.split(",")) for name, text in value.items())
        else:
            fields[key] = value.split(",")
    if "appName" in fields:
        fields["appName"] = fields.pop("appName")
    return fields


def count_contexts(fields: dict[str, list[str]]) -> int:
    total = 1
    for values in fields.values():
        total *= len(values)
    return total


def combine_contexts(fields: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    """Every combination; the first field varies slowest."""
    for values in product(*fields.values()):
        yield dict(zip(fields, values, strict=True))


def check_answer_size(size: int, done: int) -> None:
    """Raises ValidationError if the answer to this many evaluations would exceed the byte limit."""
    if size > MAX_ANSWER:
        raise ValidationError(
            f"The answer would have more than {MAX_ANSWER // 1_000_000} MB, which {done:,} evaluations fill already. "
            "Reduce the environments, the flags or the combinations of context values."
        )


def check_size(*, environments: int, flags: int, contexts: int, limit: int) -> None:
    """Raises ValidationError if there are more evaluations than the limit."""
    if environments * flags * contexts > limit:
        raise ValidationError(
            f"This would be {environments * flags * contexts:,} evaluations; the limit is {limit:,}. "
            f"Reduce the environments ({environments}), the flags ({flags:,}) "
            f"or the combinations of context values ({contexts:,})."
        )
