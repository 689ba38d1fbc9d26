"""The actions of change requests on release plans."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body
from groups.access import Caller
from releases.changes import Kind, Target
from releases.plans import actions, predicted
from releases.plans.access import Place
from releases.plans.add import add_plan
from releases.plans.documents import plan_document
from releases.plans.impact import draft_greatest, draft_greatest_of_milestone
from releases.plans.queries import find_milestone, find_plan, find_plan_with, plans_of
from releases.plans.serializers import ProgressionBody
from releases.safeguards.actions import remove_safeguard, set_safeguard
from releases.safeguards.serializers import SafeguardBody


class TemplateId(Body):
    templateId = serializers.CharField(max_length=26)


class PlanId(Body):
    planId = serializers.CharField(max_length=26)


class MilestoneId(PlanId):
    milestoneId = serializers.CharField(max_length=26)


class SourceMilestone(Body):
    sourceMilestone = serializers.CharField(max_length=26)


class ProgressionPayload(SourceMilestone, ProgressionBody):
    pass


class SafeguardPayload(PlanId):
    safeguard = SafeguardBody()


class SafeguardId(PlanId):
    safeguardId = serializers.CharField(max_length=26)


def _place(target: Target) -> Place:
    return Place(target.project, target.feature, target.environment)


def _read_plans(target: Target, payload: Any) -> list[str]:
    return [plan.pk for plan in plans_of(target.flag, target.environment)]


def _read_plan(target: Target, payload: Mapping[str, Any]) -> Any:
    """What of a plan is reviewed: not how far it is."""
    plan = find_plan(target.flag, target.environment, payload["planId"])
    if "milestoneId" in payload:
        find_milestone(plan, payload["milestoneId"])
    document = plan_document(plan)
    for milestone in document["milestones"]:
        for moving in ("startedAt", "progressionExecutedAt", "pausedAt"):
            del milestone[moving]
    return {name: document[name] for name in ("name", "activeMilestoneId", "milestones")}


def _read_transition(target: Target, payload: Mapping[str, Any]) -> Any:
    plan = find_plan_with(target.flag, target.environment, payload["sourceMilestone"])
    return find_milestone(plan, payload["sourceMilestone"]).transition


def _read_safeguards(target: Target, payload: Mapping[str, Any]) -> Any:
    plan = find_plan(target.flag, target.environment, payload["planId"])
    return [safeguard["id"] for safeguard in plan_document(plan)["safeguards"]]


def _say(text: str) -> Any:
    return lambda target, payload: text.format(target.feature)


def _say_start(target: Target, payload: Mapping[str, Any]) -> str:
    plan = predicted.find_any_plan(payload["planId"])
    name = find_milestone(plan, payload["milestoneId"]).name
    return f"Start milestone {name} of {target.feature}, and what follows"


def _add(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    add_plan(_place(target), payload["templateId"], caller=caller)


def _start(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    actions.start_milestone(_place(target), payload["planId"], payload["milestoneId"], caller=caller)


def _set_transition(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    source, transition = payload["sourceMilestone"], payload.get("transitionCondition")
    actions.set_transition(_place(target), source, transition, caller=caller)


PLAN_KINDS: Mapping[str, Kind] = {
    "addReleasePlan": Kind(
        _add,
        _read_plans,
        _say("Add a release plan to {}"),
        lambda payload: "plan",
        predicted.change_nothing,
        TemplateId,
        is_later=True,
    ),
    "startMilestone": Kind(
        _start,
        _read_plan,
        _say_start,
        lambda payload: "milestone",
        predicted.start_milestone,
        MilestoneId,
        leads_to=draft_greatest,
        is_later=True,
    ),
    "deleteReleasePlan": Kind(
        lambda target, payload, caller: actions.remove_plan(_place(target), payload["planId"], caller=caller),
        _read_plan,
        _say("Remove the release plan of {}"),
        lambda payload: "milestone",
        predicted.remove_plan,
        PlanId,
        is_later=True,
    ),
    "changeMilestoneProgression": Kind(
        _set_transition,
        _read_transition,
        _say("Change when the next milestone of {} starts"),
        lambda payload: f"transition {payload['sourceMilestone']}",
        predicted.change_nothing,
        ProgressionPayload,
        leads_to=draft_greatest_of_milestone,
        is_later=True,
    ),
    "deleteMilestoneProgression": Kind(
        _set_transition,
        _read_transition,
        _say("Have the next milestone of {} started by hand"),
        lambda payload: f"transition {payload['sourceMilestone']}",
        predicted.change_nothing,
        SourceMilestone,
        leads_to=draft_greatest_of_milestone,
        is_later=True,
    ),
    "resumeMilestoneProgression": Kind(
        lambda target, payload, caller: actions.resume_plan(_place(target), payload["planId"], caller=caller),
        _read_plan,
        _say("Resume the release plan of {}"),
        lambda payload: "resume",
        predicted.change_nothing,
        PlanId,
        leads_to=draft_greatest,
        is_later=True,
    ),
    "changeSafeguard": Kind(
        lambda target, payload, caller: set_safeguard(
            _place(target), payload["planId"], payload["safeguard"], caller=caller
        ),
        _read_safeguards,
        _say("Change a safeguard of {}"),
        None,
        predicted.change_nothing,
        SafeguardPayload,
        leads_to=draft_greatest,
        is_later=True,
    ),
    "deleteSafeguard": Kind(
        lambda target, payload, caller: remove_safeguard(
            _place(target), payload["planId"], payload["safeguardId"], caller=caller
        ),
        _read_safeguards,
        _say("Remove a safeguard of {}"),
        lambda payload: f"safeguard {payload['safeguardId']}",
        predicted.change_nothing,
        SafeguardId,
        leads_to=draft_greatest,
        is_later=True,
    ),
}
