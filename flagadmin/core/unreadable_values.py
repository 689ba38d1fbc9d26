"""Values that SDKs cannot read, although the reference takes them: certain numbers, dates and payloads.

The API stores them unchanged and says so in the header `X-Unreadable-Values`; imports note them. Forms refuse them
until the user confirms.
"""

import json
from collections.abc import Iterable, Sequence

from flagadmin.core.change_options import get_change_options
from flagadmin.core.errors import Problem, check_problems

HEADER = "X-Unreadable-Values"
FIELD = "keep_unreadable"
"""The name of the form field with which a user confirms."""
MAX_HEADER = 4_000  # characters


class UnreadableValue(Problem):
    """A value that SDKs cannot read, although its meaning is clear. Anything with it never matches in an SDK."""


def check_values(problems: Iterable[Problem]) -> None:
    """Raises ValidationError if any of the problems is to be refused."""
    check_problems(list_refused_problems(problems))


def list_refused_problems(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, without unreadable values that are to be kept. Adds these values to the list of the options."""
    problems, options = list(problems), get_change_options()
    if options.unreadable is not None:
        met = [problem for problem in problems if isinstance(problem, UnreadableValue)]
        options.unreadable.extend(problem for problem in met if problem not in options.unreadable)
    return drop_unreadable(problems) if options.keeps_unreadable else problems


def drop_unreadable(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if not isinstance(problem, UnreadableValue)]


def make_header(values: Sequence[Problem]) -> str:
    """The problems as JSON in ASCII, with the number of those that do not fit."""
    documents = [problem.as_dict() for problem in values]
    while len(text := json.dumps(documents + _summarize_rest(len(values) - len(documents)))) > MAX_HEADER:
        documents.pop()
    return text


def _summarize_rest(number: int) -> list[dict[str, str]]:
    return [{"path": "", "message": f"{number:,} more"}] if number else []
