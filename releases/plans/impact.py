"""Measures who gets something else once a milestone starts. It only reads."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone

from flagadmin.core.db.transactions import consistent_reads
from projects.definitions import Definitions, read_definitions
from projects.flags.environments.toggle import find_project_environment
from releases.models import Milestone, ReleasePlan
from releases.plans.predicted import draft_milestone, edit_in_memory, find_any_plan
from releases.plans.queries import find_milestone
from releases.predicted import Predicted
from releases.requests.impact import Measured, measure_difference, with_near


def measure_start(plan: ReleasePlan, milestone: Milestone, *, now: datetime) -> Measured:
    """Raises ValidationError if the milestone's strategies cannot be stored."""
    with consistent_reads():
        before, after = predict_start(plan, milestone)
    return measure_difference(plan.environment_id, before, after, now=now)


def predict_start(plan: ReleasePlan, milestone: Milestone) -> tuple[Definitions, Definitions]:
    """The flag and those near it, as stored and as the milestone would leave them. Raises ValidationError."""
    project_id, environment = plan.flag.project_id, plan.environment_id
    segments: set[Any] = {key for strategy in milestone.strategies for key in strategy["segments"]}
    names = with_near({plan.flag.name})
    stored = read_definitions([project_id], environment, flags=names, segments=segments)
    state = Predicted(find_project_environment(project_id, environment), stored)
    draft_milestone(state, plan, milestone)
    return stored, state.definitions()


def draft_greatest(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the milestone that changes most, of the named one and all after it: all steps are reviewed at once."""
    plan = find_any_plan(payload["planId"])
    milestones = list(plan.milestones.all())
    if "milestoneId" in payload:
        first = find_milestone(plan, payload["milestoneId"])
        milestones = [milestone for milestone in milestones if milestone.place >= first.place]
    _draft_greatest(state, plan, milestones)


def draft_greatest_edited(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the milestone that changes most, of all of a plan with one strategy edited."""
    plan = find_any_plan(payload["planId"])
    milestones = list(plan.milestones.all())
    edited = find_milestone(plan, payload["milestoneId"])
    edit_in_memory(plan, edited, payload)
    _draft_greatest(state, plan, [edited if each.pk == edited.pk else each for each in milestones])


def _draft_greatest(state: Predicted, plan: ReleasePlan, milestones: Iterable[Milestone]) -> None:
    draft_milestone(state, plan, max(milestones, key=lambda milestone: _greatness(plan, milestone)))


def _greatness(plan: ReleasePlan, milestone: Milestone) -> tuple[int, int]:
    measured = measure_start(plan, milestone, now=timezone.now())
    return len(measured.effects.broken), measured.who.affected


def draft_greatest_of_milestone(state: Predicted, name: str, payload: Any) -> None:
    plan = ReleasePlan.objects.filter(milestones=payload["sourceMilestone"]).first()
    if plan is not None:
        draft_greatest(state, name, {"planId": plan.pk})
