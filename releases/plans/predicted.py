"""Predicts what an environment would answer once a plan's change is made, without making it."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import count, zip_longest
from typing import Any

from flagadmin.core.errors import Conflict, NotFound
from flagadmin.core.unreadable_values import check_values
from projects.models import Flag
from projects.strategies.rules import merge_strategy
from releases.models import Milestone, ReleasePlan, Safeguard
from releases.plans.queries import UNFINISHED, find_by_key
from releases.plans.rules import check_paused, check_startable
from releases.plans.snapshots import PlanSnapshot
from releases.predicted import Predicted, remove_strategy, switch
from releases.safeguards.documents import assign_values
from releases.safeguards.rules import check_room
from releases.templates.rules import StrategyPlanner, tidy_transition

PlanState = ReleasePlan.State


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
            edited = state.plan(name, values, stored[key])
            others = state.flag(name)["strategies"]
            state.set_strategies(name, [edited if each["id"] == key else each for each in others])
        ids.append(key)
    for key in extra:
        remove_strategy(state, name, {"id": key})
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


def add_plan(state: Predicted, name: str, payload: Any) -> None:
    if any(plan.state in UNFINISHED for plan in state.plans(name)):
        raise Conflict(f"{name} has a release plan that is not done.")
    added = PlanSnapshot("", "", PlanState.PLANNED, None, [], [], [])
    state.set_plans(name, [added, *state.plans(name)])


def start_milestone(state: Predicted, name: str, payload: Any) -> None:
    plan = find_plan_ahead(state, name, payload)
    milestone = plan.milestone(payload["milestoneId"])
    check_startable(plan, milestone, [other for other in state.plans(name) if other.pk != plan.pk])
    is_over = milestone.transition is None and milestone.pk == plan.milestones[-1].pk
    plan = replace(plan, active_id=milestone.pk, state=PlanState.DONE if is_over else PlanState.RUNNING)
    keep_plan(state, name, draft_milestone(state, name, plan, milestone))


def resume_plan(state: Predicted, name: str, payload: Any) -> None:
    plan = find_plan_ahead(state, name, payload)
    check_paused(plan)
    keep_plan(state, name, replace(plan, state=PlanState.RUNNING))


def remove_plan(state: Predicted, name: str, payload: Any) -> None:
    plan = find_plan_ahead(state, name, payload)
    if plan.active_id is not None:
        draft_strategies(state, name, plan.strategy_ids, [])
    state.set_plans(name, [other for other in state.plans(name) if other.pk != plan.pk])


def edit_plan(state: Predicted, name: str, payload: Any) -> tuple[PlanSnapshot, Milestone]:
    """The plan with one strategy of a milestone edited, and this milestone."""
    plan = find_plan_ahead(state, name, payload)
    milestone = copy(plan.milestone(payload["milestoneId"]))
    edit_in_memory(Flag(name=name, project=state.project_environment.project), milestone, payload)
    return plan.with_milestone(milestone), milestone


def edit_strategy(state: Predicted, name: str, payload: Any) -> None:
    """Edits a strategy. One of the active milestone is the flag's strategy too."""
    plan, milestone = edit_plan(state, name, payload)
    if plan.active_id == milestone.pk:
        plan = draft_milestone(state, name, plan, milestone)
    keep_plan(state, name, plan)


def set_transition(state: Predicted, name: str, payload: Any) -> None:
    plan = find_plan_ahead(state, name, payload)
    milestone = copy(plan.milestone(payload["sourceMilestone"]))
    milestone.transition = tidy_transition(payload.get("transitionCondition"))
    keep_plan(state, name, plan.with_milestone(milestone))


def set_safeguard(state: Predicted, name: str, payload: Any) -> None:
    plan = find_plan_ahead(state, name, payload)
    added = Safeguard(plan_id=plan.pk)
    safeguards = _with_safeguard(plan.safeguards, added, payload["safeguard"], f"Release plan {plan.name}")
    keep_plan(state, name, replace(plan, safeguards=safeguards))


def set_flag_safeguard(state: Predicted, name: str, payload: Any) -> None:
    safeguards = _with_safeguard(state.safeguards(name), Safeguard(), payload["safeguard"], name)
    state.set_safeguards(name, safeguards)


def _with_safeguard(
    safeguards: Sequence[Safeguard], added: Safeguard, values: Mapping[str, Any], owner: str
) -> list[Safeguard]:
    """Returns the safeguards with one more, or with the one of the id changed. Raises NotFound, ValidationError."""
    key = values.get("id")
    if not key:
        check_room(len(safeguards), owner)
        assign_values(added, values)
        return [*safeguards, added]
    edited = copy(find_by_key(safeguards, key, f"{owner} has no safeguard {key}."))
    assign_values(edited, values)
    return [edited if each.pk == key else each for each in safeguards]


def remove_safeguard(state: Predicted, name: str, payload: Any) -> None:
    plan = find_plan_ahead(state, name, payload)
    removed = plan.safeguard(payload["safeguardId"])
    keep_plan(
        state, name, replace(plan, safeguards=[each for each in plan.safeguards if each is not removed])
    )


def remove_flag_safeguard(state: Predicted, name: str, payload: Any) -> None:
    safeguards, key = state.safeguards(name), payload["safeguardId"]
    removed = find_by_key(safeguards, key, f"{name} has no safeguard {key}.")
    state.set_safeguards(name, [each for each in safeguards if each is not removed])


def draft_off(state: Predicted, name: str, payload: Any) -> None:
    """Does what a safeguard of a flag may do at any time."""
    switch(state, name, {"enabled": False})
