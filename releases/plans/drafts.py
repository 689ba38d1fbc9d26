"""Predicts an environment's results after a plan's change, without making it."""

from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from flagadmin.core.errors import AppError, NotFound
from flagadmin.core.unreadable_values import check_values
from projects.fingerprint import UNFORESEEN, Fingerprint, take_fingerprint
from projects.models import Flag
from projects.states import change_strategy, list_fresh_ids
from projects.strategies.rules import merge_strategy
from releases.models import Milestone
from releases.plans.queries import find_by_key
from releases.plans.snapshots import PlanSnapshot
from releases.predicted import Predicted
from releases.templates.rules import MilestonePlanner


def pair_strategies(
    own: Iterable[str], stored: Container[str], wanted: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Pairs a plan's ``own`` strategies of a flag with those of a milestone: kept ids, with their new values.

    "" is the id of an added one; None as values marks a removed one.
    """
    kept = (key for key in own if key in stored)
    pairs = zip_longest(kept, map(without_identity, wanted))
    return ((key or "", values) for key, values in pairs)


def draft_strategies(
    state: Predicted, name: str, own: Iterable[str], wanted: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Drafts the effect of `releases.plans.steps.write_strategies`, and returns the ids. Raises ValidationError.

    Added strategies get temporary ids.
    """
    stored = {strategy["id"]: strategy for strategy in state.flag(name)["strategies"]}
    fresh, ids = list_fresh_ids(stored), []
    for key, values in pair_strategies(own, stored, wanted):
        before, key = stored.get(key), key or next(fresh)
        after = None if values is None else {**state.plan(name, values, before), "id": key}
        state.change(name, change_strategy(key, before, after))
        if values is not None:
            ids.append(key)
    return ids


def draft_milestone(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> PlanSnapshot:
    """Gives the flag the milestone's strategies. Returns the plan that has them. Raises ValidationError."""
    ids = draft_strategies(state, name, plan.strategy_ids, milestone.strategies)
    return replace(plan, strategy_ids=ids)


def find_strategy(milestone: Milestone, key: str) -> dict[str, Any]:
    """Raises NotFound."""
    for strategy in milestone.strategies:
        if strategy["id"] == key:
            return dict(strategy)
    raise NotFound(f"Milestone {milestone.name} has no strategy {key}.")


def edit_in_memory(flag: Flag, milestone: Milestone, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Sets members of a strategy of the milestone from the payload, which has its id, and returns it.

    Stores nothing. Raises NotFound, ValidationError.
    """
    before = find_strategy(milestone, payload["id"])
    planner = MilestonePlanner(flag.project_id, flag)
    after, problems = planner.plan(merge_strategy(before, payload), "", before["sortOrder"])
    check_values(problems)
    milestone.strategies = [after if each["id"] == after["id"] else each for each in milestone.strategies]
    return after


def without_identity(document: Mapping[str, Any]) -> dict[str, Any]:
    """A milestone's strategy as values for a flag's strategy, which has its own id and position."""
    return {key: value for key, value in document.items() if key not in ("id", "sortOrder")}


def find_plan_ahead(state: Predicted, name: str, payload: Mapping[str, Any]) -> PlanSnapshot:
    """Finds a plan by its id, or by a milestone's. Raises NotFound."""
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
    """The plan with one edited strategy of a milestone, and this milestone."""
    plan = find_plan_ahead(state, name, payload)
    milestone = copy(plan.milestone(payload["milestoneId"]))
    edit_in_memory(Flag(name=name, project=state.project_environment.project), milestone, payload)
    return plan.with_milestone(milestone), milestone


def foresee_milestone(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> Fingerprint:
    """UNFORESEEN if the milestone cannot be started. The state has its segments, and the flags near this one."""
    after = state.copy()
    after.edit(name, enabled=True)
    try:
        draft_milestone(after, name, plan, milestone)
    except AppError:
        return UNFORESEEN
    after.edit(name, enabled=True)  # an earlier step may have turned it off
    return take_fingerprint(after.definitions(), {name})
