"""Predicts what an environment would answer once a plan's change is made, without making it."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import count, zip_longest
from typing import Any

from flagadmin.core.errors import NotFound
from flagadmin.core.unreadable_values import check_values
from projects.models import Flag
from projects.strategies.rules import merge_strategy
from releases.models import Milestone
from releases.plans.queries import find_by_key
from releases.plans.snapshots import PlanSnapshot
from releases.predicted import Predicted
from releases.templates.rules import StrategyPlanner


def draft_strategies(
    state: Predicted, name: str, stored_ids: Sequence[str], strategies: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Drafts strategies as `releases.plans.steps.write_strategies` writes them, with their later ids. Raises
    ValidationError.

    `stored_ids`: strategies of the flag that are the plan's. Added ones have ids that are only known here.
    """
    stored: dict[str, Any] = {strategy["id"]: strategy for strategy in state.flag(name)["strategies"]}
    kept = [key for key in stored_ids if key in stored]
    extra, ids = kept[len(strategies) :], []
    for document, key in zip_longest(strategies, kept[: len(strategies)]):
        values = without_identity(document)
        if key is None:
            key = _draft_added(state, name, values)
        else:
            state.replace_strategy(name, state.plan(name, values, stored[key]))
        ids.append(key)
    for key in extra:
        state.remove_strategy(name, key)
    return ids


def _draft_added(state: Predicted, name: str, values: Mapping[str, Any]) -> str:
    others = state.flag(name)["strategies"]
    taken = {strategy["id"] for strategy in others}
    key = next(key for key in (f"new-{number}" for number in count(1)) if key not in taken)
    added: Any = {**state.plan(name, values), "id": key}
    state.edit(name, strategies=[*others, added])
    return key


def draft_milestone(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> PlanSnapshot:
    """The flag gets its strategies. Returns the plan that has these. Raises ValidationError."""
    ids = draft_strategies(state, name, plan.strategy_ids, milestone.strategies)
    return replace(plan, strategy_ids=ids)


def find_strategy(milestone: Milestone, key: str) -> dict[str, Any]:
    """Raises NotFound."""
    for strategy in milestone.strategies:
        if strategy["id"] == key:
            return dict(strategy)
    raise NotFound(f"Milestone {milestone.name} has no strategy {key}.")


def edit_in_memory(flag: Flag, milestone: Milestone, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a strategy of the milestone the members of the payload, which has its id, and returns it.

    Nothing is stored. Raises NotFound, ValidationError.
    """
    before = find_strategy(milestone, payload["id"])
    planner = StrategyPlanner(flag.project_id, flag)
    after, problems = planner.plan(merge_strategy(before, payload), "", before["sortOrder"])
    check_values(problems)
    milestone.strategies = [after if each["id"] == after["id"] else each for each in milestone.strategies]
    return after


def without_identity(document: Mapping[str, Any]) -> dict[str, Any]:
    """A milestone's strategy as the values of one of a flag, which has its own id and place."""
    return {key: value for key, value in document.items() if key not in ("id", "sortOrder")}


def find_plan_ahead(state: Predicted, name: str, payload: Mapping[str, Any]) -> PlanSnapshot:
    """Finds a plan by its id, or by that of one of its milestones. Raises NotFound."""
    if "planId" in payload:
        key = payload["planId"]
        return find_by_key(state.plans(name), key, f"{name} has no release plan {key}.")
    source = payload["sourceMilestone"]
    for plan in state.plans(name):
        if any(milestone.pk == source for milestone in plan.milestones):
            return plan
    raise NotFound(f"{name} has no milestone {source}.")


def keep_plan(state: Predicted, name: str, edited: PlanSnapshot) -> None:
    state.set_plans(name, [edited if plan.pk == edited.pk else plan for plan in state.plans(name)])


def edit_plan(state: Predicted, name: str, payload: Any) -> tuple[PlanSnapshot, Milestone]:
    """The plan with one strategy of a milestone edited, and this milestone."""
    plan = find_plan_ahead(state, name, payload)
    milestone = copy(plan.milestone(payload["milestoneId"]))
    edit_in_memory(Flag(name=name, project=state.project_environment.project), milestone, payload)
    return plan.with_milestone(milestone), milestone
