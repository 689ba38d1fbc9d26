"""Finds what refuses a change as a whole: checks look at what is written, so it is written and undone."""

from collections.abc import Callable
from typing import TypeVar

from flagadmin.core.change_checks import Refusal
from flagadmin.core.db.transactions import run_and_roll_back, run_with_retries
from flagadmin.core.errors import AppError
from importer.report.validation import Entry

R = TypeVar("R")


def try_out(work: Callable[[], R]) -> R:
    """Returns the result of the work, of which nothing stays."""
    return run_with_retries(lambda: run_and_roll_back(work))


def try_it(trial: Callable[[], R]) -> tuple[R | None, list[Entry]]:
    """Returns the result of a trial, or None and what refuses it."""
    try:
        return trial(), []
    except (Refusal, AppError) as refused:
        error = refused.as_app_error() if isinstance(refused, Refusal) else refused
        items = [f"{problem.path}: {problem.message}" for problem in error.details]
        return None, [{"message": error.message, "affectedItems": items}]
