"""The tool that pauses and advances release plans, and the description of plans for agents."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from django.utils import timezone
from pydantic import Field

from flagadmin.core.errors import InvalidOperation, ValidationError
from flagadmin.core.http.responses import iso
from groups.access import Caller
from integrations.mcp.tool import Answer, Call, Tool, WriteArguments, done, find_flag, perform
from projects.access import find_project_environment
from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.actions import pause_plan, resume_plan, start_milestone, step_back
from releases.plans.progress import find_step, say_transition
from releases.plans.queries import UNFINISHED, find_following, get_flag_path, read_plans
from releases.safeguards.judge import Judge


class StepReleasePlan(WriteArguments):
    flag: str = Field(description="Its name.")
    environment: str
    action: Literal["pause", "resume", "next", "back"] = Field(
        description="next: start the next milestone now. back: start the one before, and pause."
    )


def step_release_plan(call: Call, arguments: StepReleasePlan) -> Answer:
    flag = find_flag(call.caller, arguments.flag, archived=False)
    find_project_environment(flag.project_id, arguments.environment)
    plan = read_plans(flag, arguments.environment).filter(state__in=UNFINISHED).first()
    if plan is None:
        message = f"{flag.name} has no unfinished release plan in {arguments.environment}"
        raise ValidationError.at("environment", message)
    act = _ACTIONS[arguments.action]
    stepped = perform(call, arguments, lambda: describe_plan(act(plan, call.caller)))
    return done(arguments, before=describe_plan(plan), after=stepped)


def _pause(plan: ReleasePlan, caller: Caller) -> ReleasePlan:
    return pause_plan(get_flag_path(plan), plan.pk, caller=caller)


def _resume(plan: ReleasePlan, caller: Caller) -> ReleasePlan:
    return resume_plan(get_flag_path(plan), plan.pk, caller=caller)


def _start_next(plan: ReleasePlan, caller: Caller) -> ReleasePlan:
    following = find_following(plan)
    if following is None:
        raise InvalidOperation(f"Release plan {plan.name} is at its last milestone.")
    return start_milestone(get_flag_path(plan), plan.pk, following.pk, caller=caller)


def _step_back(plan: ReleasePlan, caller: Caller) -> ReleasePlan:
    return step_back(get_flag_path(plan), plan.pk, caller=caller)


_ACTIONS: Mapping[str, Callable[[ReleasePlan, Caller], ReleasePlan]] = {
    "pause": _pause,
    "resume": _resume,
    "next": _start_next,
    "back": _step_back,
}


def list_unfinished_plans(flag: Flag, environments: list[str]) -> list[Answer]:
    """The flag's unfinished plans in these environments."""
    plans = [plan for name in environments for plan in read_plans(flag, name).filter(state__in=UNFINISHED)]
    return [describe_plan(plan) for plan in plans]


def describe_plan(plan: ReleasePlan) -> Answer:
    """The progress of the plan, and the conditions of its next milestone."""
    return {
        "name": plan.name,
        "environment": plan.environment_id,
        "state": plan.state,
        **({"reason": plan.reason} if plan.reason else {}),
        "milestones": [
            {"name": milestone.name, "next": say_transition(milestone.transition)}
            | ({"active": True} if milestone.pk == plan.active_id else {})
            for milestone in plan.milestones.all()
        ],
        **_describe_next(plan),
    }


def _describe_next(plan: ReleasePlan) -> dict[str, Any]:
    if plan.active is None or plan.state == ReleasePlan.State.DONE:
        return {}
    now = timezone.now()
    step = find_step(plan, Judge(now).judge(plan), now)
    return {
        "next": step.milestone.name if step.milestone else None,
        **({"notBefore": iso(step.opens)} if step.opens else {}),
        "waitsFor": [condition.sentence for condition in step.conditions if not condition.holds],
    }


TOOLS = [
    Tool(
        "step_release_plan",
        "Pause or step a release plan",
        "Pauses a flag's release plan in an environment, resumes it, starts its next milestone, or goes back to the "
        "one before. A dry run by default. get_flag tells how far the plan is.",
        StepReleasePlan,
        step_release_plan,
        is_destructive=True,
    ),
]
