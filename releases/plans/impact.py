"""Measures whose result changes when a milestone starts. It only reads."""

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
    """The flag and those near it, stored and after starting the milestone. Raises ValidationError."""
    state = read_plan_state(plan)
    draft_milestone(state, plan.flag.name, take_snapshot(plan), milestone)
    return state.start, state.definitions()


def read_plan_state(plan: ReleasePlan) -> Predicted:
    """The flag and those near it as stored, with the segments of all milestones."""
    project_id, environment = plan.flag.project_id, plan.environment_id
    segments = set[int]().union(*(milestone.list_segments() for milestone in plan.milestones.all()))
    names = add_near({plan.flag.name})
    stored = read_definitions([project_id], environment, flags=names, segments=segments)
    return Predicted(find_project_environment(project_id, environment), stored)


def draft_greatest(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the named or later milestone with the greatest effect: all steps are reviewed at once."""
    plan = find_plan_ahead(state, name, payload)
    milestones = plan.milestones
    if "milestoneId" in payload:
        first = plan.milestone(payload["milestoneId"])
        milestones = [milestone for milestone in milestones if milestone.place >= first.place]
    _draft_greatest(state, name, plan, milestones)


def draft_greatest_edited(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the milestone with the greatest effect, in a plan with one edited strategy."""
    plan, _ = edit_plan(state, name, payload)
    _draft_greatest(state, name, plan, plan.milestones)


def _draft_greatest(state: Predicted, name: str, plan: PlanSnapshot, milestones: Sequence[Milestone]) -> None:
    greatest = max(milestones, key=lambda milestone: _greatness(state, name, plan, milestone))
    keep_plan(state, name, draft_milestone(state, name, plan, greatest))


def _greatness(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> tuple[int, int]:
    """Measures the total change once the milestone starts, including all earlier ones."""
    after, environment = state.copy(), state.project_environment.environment_id
    draft_milestone(after, name, plan, milestone)
    measured = measure_difference(environment, state.start, after.definitions(), now=timezone.now())
    return len(measured.effects.broken), measured.who.affected
