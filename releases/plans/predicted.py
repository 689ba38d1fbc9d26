"""What an environment would answer once a plan's change is made, without making it."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from flagadmin.core.errors import NotFound
from releases.models import Milestone, ReleasePlan
from releases.plans.queries import find_milestone
from releases.predicted import Predicted, remove_strategy


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
