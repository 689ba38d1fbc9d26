"""What an environment would answer once a plan's change is made, without making it."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from flagadmin.core.errors import NotFound
from flagadmin.core.unreadable_values import check_values
from projects.strategies.rules import merge_strategy
from releases.models import Milestone, ReleasePlan
from releases.plans.queries import find_milestone
from releases.predicted import Predicted, remove_strategy
from releases.templates.rules import StrategyPlanner


def draft_milestone(state: Predicted, plan: ReleasePlan, milestone: Milestone) -> None:
    """As `releases.plans.writing.write_strategies` makes them. Raises ValidationError."""
    name = plan.flag.name
    stored: dict[str, Any] = {strategy["id"]: strategy for strategy in state.flag(name)["strategies"]}
    kept = [key for key in plan.strategy_ids if key in stored]
    extra = []
    for document, key in zip_longest(milestone.strategies, kept):
        if document is None:
            extra.append(key)
        elif key is None:
            added = state.plan(name, without_identity(document))
            state.edit(name, strategies=[*state.flag(name)["strategies"], added])
        else:
            edited = state.plan(name, without_identity(document), stored[key])
            strategies = state.flag(name)["strategies"]
            state.set_strategies(name, [edited if each["id"] == key else each for each in strategies])
    for key in extra:
        remove_strategy(state, name, {"id": key})


def find_strategy(milestone: Milestone, key: str) -> dict[str, Any]:
    """Raises NotFound."""
    for strategy in milestone.strategies:
        if strategy["id"] == key:
            return dict(strategy)
    raise NotFound(f"Milestone {milestone.name} has no strategy {key}.")


def edit_in_memory(plan: ReleasePlan, milestone: Milestone, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a strategy of the milestone the members of the payload, which has its id, and returns it.

    Nothing is stored. Raises NotFound, ValidationError.
    """
    before = find_strategy(milestone, payload["id"])
    planner = StrategyPlanner(plan.flag.project_id, plan.flag)
    after, problems = planner.plan(merge_strategy(before, payload), "", before["sortOrder"])
    check_values(problems)
    milestone.strategies = [after if each["id"] == after["id"] else each for each in milestone.strategies]
    return after


def edit_strategy(state: Predicted, name: str, payload: Any) -> None:
    """Of the active milestone, it is the flag's strategy too."""
    plan = find_any_plan(payload["planId"])
    milestone = find_milestone(plan, payload["milestoneId"])
    edit_in_memory(plan, milestone, payload)
    if plan.active_id == milestone.pk:
        draft_milestone(state, plan, milestone)


def without_identity(document: Mapping[str, Any]) -> dict[str, Any]:
    """A milestone's strategy as the values of one of a flag, which has its own id and place."""
    return {key: value for key, value in document.items() if key not in ("id", "sortOrder")}


def start_milestone(state: Predicted, name: str, payload: Any) -> None:
    plan = find_any_plan(payload["planId"])
    draft_milestone(state, plan, find_milestone(plan, payload["milestoneId"]))


def remove_plan(state: Predicted, name: str, payload: Any) -> None:
    stored = {strategy["id"] for strategy in state.flag(name)["strategies"]}
    for key in find_any_plan(payload["planId"]).strategy_ids:
        if key in stored:
            remove_strategy(state, name, {"id": key})


def change_nothing(state: Predicted, name: str, payload: Any) -> None:
    """For what only decides about later steps."""


def find_any_plan(key: str) -> ReleasePlan:
    """Raises NotFound."""
    plan = ReleasePlan.objects.select_related("flag").filter(pk=key).first()
    if plan is None:
        raise NotFound(f"Release plan {key} not found.")
    return plan
