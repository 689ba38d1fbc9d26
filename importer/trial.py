"""Finds refusals of a change as a whole: checks look at written data, so it is written and rolled back."""

from collections.abc import Callable
from typing import TypeVar

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import check_comment
from flagadmin.core.db.transactions import run_and_roll_back, run_with_retries
from flagadmin.core.errors import AppError
from importer.apply.execute import list_touched_places
from importer.plan.import_plan import Plan
from importer.report import Entry

R = TypeVar("R")


def try_out(work: Callable[[], R]) -> R:
    """Returns the result of the work, and rolls it back."""
    return run_with_retries(lambda: run_and_roll_back(work))


def try_it(trial: Callable[[], R]) -> tuple[R | None, list[Entry]]:
    """The result of a trial, or None and the refusals.

    Raises temporary errors such as MaintenanceMode, which say nothing about the trial.
    """
    try:
        return trial(), []
    except (Refusal, AppError) as refused:
        error = refused.as_app_error() if isinstance(refused, Refusal) else refused
        if error.status >= 500:
            raise
        items = [str(problem) for problem in error.details]
        return None, [{"message": error.message, "affectedItems": items}]


def find_missing_comment(plan: Plan) -> list[Entry]:
    """Returns the error of a plan that lacks a required comment."""
    return try_it(lambda: check_comment(list_touched_places(plan)))[1]
