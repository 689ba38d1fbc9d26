"""Changes of release plans."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from rest_framework import serializers

from flagadmin.core.errors import Conflict, NotFound, ValidationError
from flagadmin.core.http.fields import Body
from groups.access import Caller
from projects.states import get_content
from projects.strategies.fields import drop_sort_order
from releases.changes import Kind, Payload, register
from releases.changes.flags import ShownStrategy
from releases.models import Milestone, ReleasePlan, ReleaseTemplate
from releases.plans import actions
from releases.plans.actions import check_paused, check_startable, edit_milestone_strategy, list_own_strategies
from releases.plans.add import add_plan, find_usable_template
from releases.plans.api import MilestoneStrategyChanges, ProgressionBody
from releases.plans.queries import UNFINISHED, PlanSnapshot, find_by_key
from releases.plans.steps import (
    draft_greatest,
    draft_greatest_edited,
    draft_milestone,
    draft_strategies,
    edit_plan,
    find_plan_ahead,
    find_strategy,
    keep_plan,
)
from releases.targets import Predicted, Target
from releases.templates.actions import tidy_transition

State = ReleasePlan.State


class TemplateId(Body):
    templateId = serializers.CharField(max_length=26)


class PlanId(Body):
    planId = serializers.CharField(max_length=26)


class MilestoneId(PlanId):
    milestoneId = serializers.CharField(max_length=26)


class MilestoneStrategyPayload(MilestoneId, MilestoneStrategyChanges):
    id = serializers.CharField(max_length=26)


class SourceMilestone(Body):
    sourceMilestone = serializers.CharField(max_length=26)


class ProgressionPayload(SourceMilestone, ProgressionBody):
    pass


@register("addReleasePlan")
class AddPlan(Kind):
    payload, is_later = TemplateId, True
    words = "Add a release plan to {}"
    subject = "plan"
    act = staticmethod(add_plan)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        if any(plan.state in UNFINISHED for plan in state.plans(name)):
            raise Conflict(f"{name} has a release plan that is not done.")
        _find_template(state.project, payload)
        added = PlanSnapshot("", "", State.PLANNED, None, [], [], [])
        state.set_plans(name, [added, *state.plans(name)])

    def read(self, target: Target, payload: Payload) -> dict[str, Any]:
        """The flag's plans, and the template's content, which the plan copies."""
        plans = [plan.pk for plan in target.plans]
        milestones = _find_template(target.project, payload).milestones.order_by("place")
        return {"plans": plans, "milestones": [_describe_copied(milestone) for milestone in milestones]}

    def explain_conflict(self, target: Target, payload: Payload, then: Any, now: Any) -> str:
        if not isinstance(then, dict) or then["plans"] != now["plans"]:  # older requests: a list of plans
            return ""
        template = _find_template(target.project, payload)
        return f"Release template {template.name} has changed since this was proposed."


def _describe_copied(milestone: Milestone) -> list[Any]:
    """The parts of a template's milestone that a plan copies, without ids."""
    strategies = [get_content(strategy) for strategy in milestone.strategies]
    return [milestone.name, strategies, milestone.transition]


def _find_template(project_id: str, payload: Payload) -> ReleaseTemplate:
    """Raises NotFound if plans can no longer be made from it."""
    try:
        return find_usable_template(ReleaseTemplate.objects.all(), payload["templateId"], project_id)
    except ValidationError as error:
        [problem] = error.details
        raise NotFound(f"{problem.message[:1].upper()}{problem.message[1:]}.") from error


class OfPlan(Kind):
    """Its review covers all later steps of the plan."""

    payload: type[serializers.Serializer] = PlanId
    is_later = True

    def draft_review(self, state: Predicted, name: str, payload: Payload) -> None:
        draft_greatest(state, name, payload)

    def read(self, target: Target, payload: Payload) -> Any:
        """The reviewed part of a plan, without its progress."""
        plan = target.plan(payload["planId"])
        if "milestoneId" in payload:
            plan.milestone(payload["milestoneId"])
        return {
            "name": plan.name,
            "activeMilestoneId": plan.active_id,
            "milestones": [_describe_milestone(milestone) for milestone in plan.milestones],
        }


def _describe_milestone(milestone: Milestone) -> dict[str, Any]:
    return {
        "id": milestone.pk,
        "name": milestone.name,
        "transitionCondition": milestone.transition,
        "strategies": milestone.strategies,
    }


@register("startMilestone")
class StartMilestone(OfPlan):
    payload = MilestoneId
    subject = "milestone"
    act = staticmethod(actions.start_milestone)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        plan = find_plan_ahead(state, name, payload)
        milestone = plan.milestone(payload["milestoneId"])
        check_startable(plan, milestone, [other for other in state.plans(name) if other.pk != plan.pk])
        plan = replace(plan, active_id=milestone.pk).run()
        keep_plan(state, name, draft_milestone(state, name, plan, milestone))

    def say(self, target: Target, payload: Payload, then: Any) -> str:
        key = payload["milestoneId"]
        name = (
            Milestone.objects.filter(pk=key).values_list("name", flat=True).first()
        )  # its plan may be deleted
        return f"Start milestone {name or key} of {target.feature}, and what follows"


@register("deleteReleasePlan")
class DeletePlan(OfPlan):
    words = "Remove the release plan of {}"
    subject = "milestone"
    draft_review = Kind.draft_review  # nothing follows
    act = staticmethod(actions.remove_plan)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        plan = find_plan_ahead(state, name, payload)
        if plan.active_id is not None:
            draft_strategies(state, name, list_own_strategies(plan, state.plans(name)), [])
        state.set_plans(name, [other for other in state.plans(name) if other.pk != plan.pk])


@register("updateMilestoneStrategy")
class UpdateMilestoneStrategy(ShownStrategy, OfPlan):
    payload = MilestoneStrategyPayload
    words = "Change a strategy of a milestone of {}"
    of_strategies = False
    subject = "strategy {id}"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        keys = payload["planId"], payload["milestoneId"], payload["id"]
        values = {
            name: value for name, value in payload.items() if name not in ("planId", "milestoneId", "id")
        }
        edit_milestone_strategy(target.path, *keys, values, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        """A strategy of the active milestone is also the flag's strategy."""
        plan, milestone = edit_plan(state, name, payload)
        if plan.active_id == milestone.pk:
            plan = draft_milestone(state, name, plan, milestone)
        keep_plan(state, name, plan)

    def draft_review(self, state: Predicted, name: str, payload: Payload) -> None:
        draft_greatest_edited(state, name, payload)

    def read(self, target: Target, payload: Payload) -> Any:
        milestone = target.plan(payload["planId"]).milestone(payload["milestoneId"])
        strategy = find_strategy(milestone, payload["id"])
        return drop_sort_order(strategy)


@register("changeMilestoneProgression")
class SetTransition(OfPlan):
    payload: type[serializers.Serializer] = ProgressionPayload
    words = "Change when the next milestone of {} starts"
    subject = "transition {sourceMilestone}"

    def apply(self, target: Target, payload: Payload, caller: Caller) -> None:
        source, transition = payload["sourceMilestone"], payload.get("transitionCondition")
        actions.set_transition(target.path, source, transition, caller=caller)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        plan = find_plan_ahead(state, name, payload)
        milestone = copy(plan.milestone(payload["sourceMilestone"]))
        milestone.transition = tidy_transition(payload.get("transitionCondition"))
        edited = plan.with_milestone(milestone)
        keep_plan(state, name, edited.run() if edited.state == State.RUNNING else edited)

    def read(self, target: Target, payload: Payload) -> Mapping[str, Any] | None:
        source = payload["sourceMilestone"]
        milestones = (milestone for plan in target.plans for milestone in plan.milestones)
        message = f"{target.feature} has no milestone {source} in {target.environment}."
        return find_by_key(milestones, source, message).transition


@register("deleteMilestoneProgression")
class DeleteTransition(SetTransition):
    payload = SourceMilestone
    words = "Have the next milestone of {} started by hand"


@register("resumeMilestoneProgression")
class ResumePlan(OfPlan):
    words = "Resume the release plan of {}"
    subject = "resume"
    act = staticmethod(actions.resume_plan)

    def draft(self, state: Predicted, name: str, payload: Payload) -> None:
        plan = find_plan_ahead(state, name, payload)
        check_paused(plan)
        keep_plan(state, name, plan.run())
