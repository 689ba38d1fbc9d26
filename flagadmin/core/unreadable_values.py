"""Values that SDKs cannot read, although the reference accepts them: certain numbers, dates and payloads.

The API stores them unchanged and reports them in the header `X-Unreadable-Values`; imports note them. Forms refuse them
until the user confirms. The API refuses new percentages of this kind as well.
"""

import json
from collections.abc import Iterable, Sequence

from flagadmin.core.change_options import get_change_options
from flagadmin.core.errors import Problem, check_problems

HEADER = "X-Unreadable-Values"
FIELD = "keep_unreadable"
"""The name of the form field with which a user confirms such values."""
MAX_HEADER = 4_000  # characters


class UnreadableValue(Problem):
    """A value that SDKs cannot read, although its meaning is clear. A condition with it never matches in an SDK."""


class UnreadablePercentage(UnreadableValue):
    """A percentage that SDKs cannot read. Only files and other servers may contain one."""


def check_values(problems: Iterable[Problem]) -> None:
    """Raises ValidationError if any of the problems must be refused."""
    check_problems(list_refused_problems(problems))


def list_refused_problems(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that must be refused. Adds unreadable values that may be kept to the list in the options."""
    problems, options = list(problems), get_change_options()
    refused = UnreadablePercentage if not options.comes_from_elsewhere else ()
    kept = [
        problem
        for problem in problems
        if isinstance(problem, UnreadableValue) and not isinstance(problem, refused)
    ]
    if options.unreadable is not None:
        options.unreadable.extend(problem for problem in kept if problem not in options.unreadable)
    return [problem for problem in problems if problem not in kept] if options.keeps_unreadable else problems


def drop_unreadable(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if not isinstance(problem, UnreadableValue)]


def make_header(values: Sequence[Problem]) -> str:
    """The problems as ASCII JSON, with the number of those that do not fit."""
    documents = [problem.as_dict() for problem in values]
    while len(text := json.dumps(documents + _summarize_rest(len(values) - len(documents)))) > MAX_HEADER:
        documents.pop()
    return text


def _summarize_rest(number: int) -> list[dict[str, str]]:
    return [{"path": "", "message": f"{number:,} more"}] if number else []
