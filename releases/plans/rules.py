"""Validates the steps of a strategy."""

from collections.abc import Iterator, Sequence

from flagadmin.core.errors import Problem, check_problems
from releases.templates.rules import MAX_MILESTONES


def check_rollouts(rollouts: Sequence[int], path: str) -> None:
    """Raises ValidationError."""
    check_problems(_rollouts_problems(rollouts, path))


def _rollouts_problems(rollouts: Sequence[int], path: str) -> Iterator[Problem]:
    if not rollouts or any(not 1 <= rollout <= 100 for rollout in rollouts):
        yield Problem(path, "must be numbers from 1 to 100")
    elif list(rollouts) != sorted(set(rollouts)):
        yield Problem(path, "must increase from step to step")
    elif len(rollouts) > MAX_MILESTONES:
        yield Problem(path, f"must be at most {MAX_MILESTONES} steps, not {len(rollouts)}")
