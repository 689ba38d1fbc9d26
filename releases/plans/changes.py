"""The actions of change requests on release plans."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rest_framework import serializers

from flagadmin.core.http.fields import Body
from groups.access import Caller
from releases.changes import Kind
from releases.models import Milestone, Safeguard
from releases.plans import actions, predicted
from releases.plans.access import FlagPath
from releases.plans.add import add_plan
from releases.plans.documents import safeguard_document
from releases.plans.edit import edit_milestone_strategy
from releases.plans.impact import draft_greatest, draft_greatest_edited
from releases.plans.queries import find_by_key
from releases.plans.serializers import MilestoneStrategyChanges, ProgressionBody
from releases.safeguards.actions import remove_safeguard, set_safeguard
from releases.safeguards.flag_actions import remove_flag_safeguard, set_flag_safeguard
from releases.safeguards.serializers import FlagSafeguardBody, SafeguardBody
from releases.targets import Target


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


class SafeguardPayload(PlanId):
    safeguard = SafeguardBody()


class SafeguardId(PlanId):
    safeguardId = serializers.CharField(max_length=26)


class FlagSafeguardPayload(Body):
    safeguard = FlagSafeguardBody()


class FlagSafeguardId(Body):
    safeguardId = serializers.CharField(max_length=26)


def _place(target: Target) -> FlagPath:
    return FlagPath(target.project, target.feature, target.environment)


def _read_plans(target: Target, payload: Any) -> list[str]:
    return [plan.pk for plan in target.plans]


def _read_plan(target: Target, payload: Mapping[str, Any]) -> Any:
    """Reads the reviewed part of a plan: not how far it is."""
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


def _read_strategy(target: Target, payload: Mapping[str, Any]) -> Any:
    milestone = target.plan(payload["planId"]).milestone(payload["milestoneId"])
    strategy = predicted.find_strategy(milestone, payload["id"])
    return {name: value for name, value in strategy.items() if name != "sortOrder"}


def _edit_strategy(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    values = {name: value for name, value in payload.items() if name not in ("planId", "milestoneId", "id")}
    keys = payload["planId"], payload["milestoneId"], payload["id"]
    edit_milestone_strategy(_place(target), *keys, values, caller=caller)


def _read_transition(target: Target, payload: Mapping[str, Any]) -> Any:
    source = payload["sourceMilestone"]
    milestones = (milestone for plan in target.plans for milestone in plan.milestones)
    message = f"{target.feature} has no milestone {source} in {target.environment}."
    return find_by_key(milestones, source, message).transition


def _read_safeguard(target: Target, payload: Mapping[str, Any]) -> Any:
    """The one that is changed or removed; one that is added comes in the way of no other."""
    plan, key = target.plan(payload["planId"]), _key_of_safeguard(payload)
    return _without_alarm(plan.safeguard(key)) if key else None


def _read_flag_safeguard(target: Target, payload: Mapping[str, Any]) -> Any:
    key = _key_of_safeguard(payload)
    return _without_alarm(target.safeguard(key)) if key else target.definition and None


def _key_of_safeguard(payload: Mapping[str, Any]) -> str:
    return payload.get("safeguardId") or payload["safeguard"].get("id") or ""


def _without_alarm(safeguard: Safeguard) -> Mapping[str, Any]:
    return safeguard_document(safeguard) | {"firingSince": None}


def _say(text: str) -> Any:
    return lambda target, payload: text.format(target.feature)


def _say_start(target: Target, payload: Mapping[str, Any]) -> str:
    key = payload["milestoneId"]
    name = Milestone.objects.filter(pk=key).values_list("name", flat=True).first()  # its plan may be gone
    return f"Start milestone {name or key} of {target.feature}, and what follows"


def _add(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    add_plan(_place(target), payload["templateId"], caller=caller)


def _set_transition(target: Target, payload: Mapping[str, Any], caller: Caller) -> None:
    source, transition = payload["sourceMilestone"], payload.get("transitionCondition")
    actions.set_transition(_place(target), source, transition, caller=caller)


def _call_on_plan(apply: Callable[..., Any], *names: str) -> Callable[[Target, Any, Caller], Any]:
    """An action on a plan that takes these members of the payload."""

    def call(target: Target, payload: Mapping[str, Any], caller: Caller) -> Any:
        return apply(_place(target), payload["planId"], *(payload[name] for name in names), caller=caller)

    return call


def _say_about(subject: str, member: str = "") -> Callable[[Any], str]:
    """``member`` of the payload tells which."""
    return lambda payload: f"{subject} {payload[member]}" if member else subject


_later = partial(Kind, is_later=True)
"""Actions that decide only about later steps. With ``leads_to``, these are reviewed."""
_transition = partial(
    _later,
    _set_transition,
    _read_transition,
    about=_say_about("transition", "sourceMilestone"),
    draft=predicted.set_transition,
    leads_to=draft_greatest,
)
_safeguard = partial(_later, read=_read_safeguard, leads_to=draft_greatest)

PLAN_KINDS: Mapping[str, Kind] = {
    "addReleasePlan": _later(
        _add,
        _read_plans,
        _say("Add a release plan to {}"),
        _say_about("plan"),
        predicted.add_plan,
        TemplateId,
    ),
    "startMilestone": _later(
        _call_on_plan(actions.start_milestone, "milestoneId"),
        _read_plan,
        _say_start,
        _say_about("milestone"),
        draft=predicted.start_milestone,
        payload=MilestoneId,
        leads_to=draft_greatest,
    ),
    "deleteReleasePlan": _later(
        _call_on_plan(actions.remove_plan),
        _read_plan,
        _say("Remove the release plan of {}"),
        _say_about("milestone"),
        draft=predicted.remove_plan,
        payload=PlanId,
    ),
    "updateMilestoneStrategy": _later(
        _edit_strategy,
        _read_strategy,
        _say("Change a strategy of a milestone of {}"),
        _say_about("strategy", "id"),
        draft=predicted.edit_strategy,
        payload=MilestoneStrategyPayload,
        leads_to=draft_greatest_edited,
    ),
    "changeMilestoneProgression": _transition(
        say=_say("Change when the next milestone of {} starts"), payload=ProgressionPayload
    ),
    "deleteMilestoneProgression": _transition(
        say=_say("Have the next milestone of {} started by hand"), payload=SourceMilestone
    ),
    "resumeMilestoneProgression": _later(
        _call_on_plan(actions.resume_plan),
        _read_plan,
        _say("Resume the release plan of {}"),
        _say_about("resume"),
        draft=predicted.resume_plan,
        payload=PlanId,
        leads_to=draft_greatest,
    ),
    "changeSafeguard": _safeguard(
        _call_on_plan(set_safeguard, "safeguard"),
        say=_say("Change a safeguard of {}"),
        about=None,
        draft=predicted.set_safeguard,
        payload=SafeguardPayload,
    ),
    "deleteSafeguard": _safeguard(
        _call_on_plan(remove_safeguard, "safeguardId"),
        say=_say("Remove a safeguard of {}"),
        about=_say_about("safeguard", "safeguardId"),
        draft=predicted.remove_safeguard,
        payload=SafeguardId,
    ),
    "changeFeatureEnvSafeguard": _later(
        lambda target, payload, caller: set_flag_safeguard(
            _place(target), payload["safeguard"], caller=caller
        ),
        _read_flag_safeguard,
        _say("Have a safeguard turn {} off"),
        None,
        draft=predicted.set_flag_safeguard,
        payload=FlagSafeguardPayload,
        leads_to=predicted.draft_off,
    ),
    "deleteFeatureEnvSafeguard": _later(
        lambda target, payload, caller: remove_flag_safeguard(
            _place(target), payload["safeguardId"], caller=caller
        ),
        _read_flag_safeguard,
        _say("Remove a safeguard of {}"),
        _say_about("safeguard", "safeguardId"),
        draft=predicted.remove_flag_safeguard,
        payload=FlagSafeguardId,
    ),
}
