"""Measures whose result changes once a milestone starts. It only reads."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from flagadmin.core.db.transactions import consistent_reads
from projects.definitions import Definitions, read_definitions
from projects.flags.environments.toggle import find_project_environment
from releases.models import Milestone, ReleasePlan
from releases.plans.drafts import draft_milestone, edit_plan, find_plan_ahead, keep_plan
from releases.plans.snapshots import PlanSnapshot, take_snapshot
from releases.predicted import Predicted
from releases.requests.impact import Measured, add_near, measure_difference


def measure_start(plan: ReleasePlan, milestone: Milestone, *, now: datetime) -> Measured:
    """Raises ValidationError if the milestone's strategies cannot be stored."""
    with consistent_reads():
        before, after = predict_start(plan, milestone)
    return measure_difference(plan.environment_id, before, after, now=now)


def predict_start(plan: ReleasePlan, milestone: Milestone) -> tuple[Definitions, Definitions]:
    """The flag and those near it, as stored and as the milestone would leave them. Raises ValidationError."""
    project_id, environment = plan.flag.project_id, plan.environment_id
    segments: set[Any] = {key for strategy in milestone.strategies for key in strategy["segments"]}
    names = add_near({plan.flag.name})
    stored = read_definitions([project_id], environment, flags=names, segments=segments)
    state = Predicted(find_project_environment(project_id, environment), stored)
    draft_milestone(state, plan.flag.name, take_snapshot(plan), milestone)
    return stored, state.definitions()


def draft_greatest(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the milestone that changes most, of the named one and all after it: all steps are reviewed at once."""
    plan = find_plan_ahead(state, name, payload)
    milestones = plan.milestones
    if "milestoneId" in payload:
        first = plan.milestone(payload["milestoneId"])
        milestones = [milestone for milestone in milestones if milestone.place >= first.place]
    _draft_greatest(state, name, plan, milestones)


def draft_greatest_edited(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the milestone that changes most, of all of a plan with one strategy edited."""
    plan, _ = edit_plan(state, name, payload)
    _draft_greatest(state, name, plan, plan.milestones)


def _draft_greatest(state: Predicted, name: str, plan: PlanSnapshot, milestones: Sequence[Milestone]) -> None:
    greatest = max(milestones, key=lambda milestone: _greatness(state, name, plan, milestone))
    keep_plan(state, name, draft_milestone(state, name, plan, greatest))


def _greatness(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> tuple[int, int]:
    """Measures how much has changed once the milestone starts, with all that changes before."""
    after, environment = state.copy(), state.project_environment.environment_id
    draft_milestone(after, name, plan, milestone)
    measured = measure_difference(environment, state.start, after.definitions(), now=timezone.now())
    return len(measured.effects.broken), measured.who.affected
