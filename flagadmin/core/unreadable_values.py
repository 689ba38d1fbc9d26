"""Values that SDKs cannot read, although the reference takes them: certain numbers, dates and payloads.

The API stores them unchanged and says so in the header `X-Unreadable-Values`; imports note them. Forms refuse them
until the user confirms.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from flagadmin.core.errors import Problem, check_problems

HEADER = "X-Unreadable-Values"
FIELD = "keep_unreadable"
"""The name of the form field with which a user confirms."""
MAX_HEADER = 4_000  # characters


class UnreadableValue(Problem):
    """A value that SDKs cannot read, although its meaning is clear. Anything with it never matches in an SDK."""


class Noted(list[UnreadableValue]):
    """The unreadable values that a request has met, and whether it stores them."""

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self.keeps = keeps


_noted: ContextVar[Noted | None] = ContextVar("noted", default=None)


@contextmanager
def noting_unreadable_values(*, keep: bool) -> Iterator[Noted]:
    """Inside, checks add unreadable values to this list, and accept them if ``keep``."""
    noted = Noted(keeps=keep)
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def check_values(problems: Iterable[Problem]) -> None:
    """Raises ValidationError if any of the problems is to be refused."""
    check_problems(list_refused_problems(problems))


def list_refused_problems(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, without unreadable values that are to be kept."""
    problems = list(problems)
    noted = _noted.get()
    if noted is None:
        return problems
    noted += [
        problem for problem in problems if isinstance(problem, UnreadableValue) and problem not in noted
    ]
    return drop_unreadable(problems) if noted.keeps else problems


def drop_unreadable(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if not isinstance(problem, UnreadableValue)]


def make_header(values: Sequence[UnreadableValue]) -> str:
    """The problems as JSON in ASCII, with the number of those that do not fit."""
    documents = [problem.as_dict() for problem in values]
    while len(text := json.dumps(documents + _summarize_rest(len(values) - len(documents)))) > MAX_HEADER:
        documents.pop()
    return text


def _summarize_rest(number: int) -> list[dict[str, str]]:
    return [{"path": "", "message": f"{number:,} more"}] if number else []
