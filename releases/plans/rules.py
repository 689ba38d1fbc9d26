"""Validates the steps of a strategy, and whether a plan can start or continue."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from flagadmin.core.errors import Conflict, InvalidOperation, Problem, check_problems
from releases.models import Milestone, ReleasePlan
from releases.templates.rules import MAX_MILESTONES

State = ReleasePlan.State


class Standing(Protocol):
    """A release plan, stored or predicted."""

    @property
    def pk(self) -> Any: ...

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def active_id(self) -> str | None: ...

    @property
    def strategy_ids(self) -> Sequence[str]: ...


def check_startable(plan: Standing, milestone: Milestone, others: Iterable[Standing]) -> None:
    """``others``: the flag's plans in the environment. Raises InvalidOperation, Conflict."""
    if plan.active_id == milestone.pk:
        raise InvalidOperation(f"Milestone {milestone.name} is active already.")
    if plan.state == State.DONE and any(other.state != State.DONE for other in others):
        raise Conflict("The flag has another release plan in the environment.")


def check_paused(plan: Standing) -> None:
    """Raises InvalidOperation."""
    if plan.state != State.PAUSED:
        raise InvalidOperation(f"Release plan {plan.name} is {plan.state}: only a paused one can go on.")


def list_own_strategies(plan: Standing, plans: Iterable[Standing]) -> list[str]:
    """The flag's strategies that belong to the plan. Those of a completed one may belong to another plan by now.

    ``plans``: the flag's plans in the environment, newest first.
    """
    if plan.state != State.DONE:
        return list(plan.strategy_ids)
    taken: set[str] = set()
    is_newer = True
    for other in plans:
        if other.pk == plan.pk:
            is_newer = False
        elif is_newer or other.state != State.DONE:
            taken.update(other.strategy_ids)
    return [key for key in plan.strategy_ids if key not in taken]


class Steps(NamedTuple):
    """A strategy in steps: the percentage of users at each, and the condition of each."""

    strategy: Mapping[str, Any]
    rollouts: Sequence[int]
    transition: Mapping[str, Any] | None
    pause_if_broken: bool = False


def check_rollouts(rollouts: Sequence[int]) -> None:
    """Raises ValidationError."""
    check_problems(_rollouts_problems(rollouts))


def _rollouts_problems(rollouts: Sequence[int]) -> Iterator[Problem]:
    if not rollouts or any(not 1 <= rollout <= 100 for rollout in rollouts):
        yield Problem("rollouts", "must be numbers from 1 to 100")
    elif list(rollouts) not in (rising := sorted(set(rollouts)), rising[::-1]):
        yield Problem("rollouts", "must increase, or decrease, from step to step")
    elif len(rollouts) > MAX_MILESTONES:
        yield Problem("rollouts", f"must be at most {MAX_MILESTONES} steps, not {len(rollouts)}")
