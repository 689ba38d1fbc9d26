"""Starts the milestones of release plans, pauses plans, edits and removes them."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Conflict, InvalidOperation, ValidationError, check_problems
from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_flag
from projects.flags.environments.actions import disable_flag
from releases.models import Milestone, ReleasePlan
from releases.plans.access import FlagPath, access_flag_in, access_plan_for_update, get_flag_path
from releases.plans.approval import is_approved_step, is_let_through, note_edit, record_skip, through_gate
from releases.plans.documents import plan_document
from releases.plans.progress import get_standing
from releases.plans.queries import (
    find_milestone,
    find_plan,
    find_plan_with,
    find_preceding,
    read_plans,
)
from releases.plans.rules import check_paused, check_startable, list_own_strategies
from releases.plans.steps import (
    enter_milestone,
    enter_pause,
    finish_if_over,
    record_plan,
    save_plan,
    write_strategies,
)
from releases.templates.rules import tidy_transition, transition_problems

State = ReleasePlan.State
UPDATE, DELETE = Permission.UPDATE_FEATURE_STRATEGY, Permission.DELETE_FEATURE_STRATEGY


def start_milestone(
    flag_path: FlagPath, plan_key: str, milestone_key: str, *, then_pause: str = "", caller: Caller
) -> ReleasePlan:
    """Makes the milestone's strategies those of the flag. ``then_pause``: why the plan does not go on then.

    Raises NotFound, NoAccess, ValidationError, Conflict. Where changes need a change request, it is refused unless the
    plan is approved and this is the next milestone, or the one before.
    """
    plan = _read_plan(flag_path, plan_key, caller)
    milestone = find_milestone(plan, milestone_key)
    is_approved = is_approved_step(plan, milestone)
    payload = {"planId": plan_key, "milestoneId": milestone_key}
    with through_gate(flag_path, "startMilestone", payload, is_approved=is_approved):
        return _start(flag_path, plan_key, milestone_key, is_approved, then_pause, caller)


@transactional
def _start(
    flag_path: FlagPath, plan_key: str, milestone_key: str, is_approved: bool, then_pause: str, caller: Caller
) -> ReleasePlan:
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    milestone = find_milestone(plan, milestone_key)
    if is_approved and not is_approved_step(plan, milestone):
        raise Conflict("The release plan has just been changed. Look at it again.")
    check_startable(plan, milestone, read_plans(plan.flag, plan.environment_id).exclude(pk=plan.pk))
    plan.approved = is_approved or is_let_through(flag_path)
    plan.by, plan.by_name, plan.is_personal = caller.user, caller.name, caller.user is not None
    enter_milestone(plan, milestone, caller)
    if then_pause:
        enter_pause(plan, then_pause, caller)
    return plan


@transactional
def pause_plan(flag_path: FlagPath, plan_key: str, *, reason: str = "", caller: Caller) -> ReleasePlan:
    """Raises NotFound, NoAccess, InvalidOperation."""
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    if plan.state != State.RUNNING:
        raise InvalidOperation(f"Release plan {plan.name} is {plan.state}: only a running one can be paused.")
    enter_pause(plan, reason or f"{caller.name} has paused it.", caller)
    return plan


@transactional
def resume_plan(flag_path: FlagPath, plan_key: str, *, caller: Caller) -> ReleasePlan:
    """The active milestone's time counts on. Safeguards read what is reported from now on.

    Raises NotFound, NoAccess, InvalidOperation.
    """
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    check_paused(plan)
    _, since = get_standing(plan)
    now = timezone.now()
    plan.since = since + (now - (plan.paused_at or now))
    plan.state, plan.reason, plan.paused_at, plan.numbers_from = State.RUNNING, "", None, now
    plan.by, plan.by_name, plan.is_personal = caller.user, caller.name, caller.user is not None
    plan.approved = plan.approved or is_let_through(flag_path)
    finish_if_over(plan)
    save_plan(plan, now)
    record_plan(EventType.RELEASE_PLAN_RESUMED, plan, caller)
    return plan


def step_back(flag_path: FlagPath, plan_key: str, *, caller: Caller) -> ReleasePlan:
    """Starts the milestone before the active one, and pauses. Raises what `start_milestone` raises."""
    plan = _read_plan(flag_path, plan_key, caller)
    milestone = find_preceding(plan)
    if milestone is None:
        raise InvalidOperation(f"Release plan {plan.name} is at its first milestone.")
    reason = f"{caller.name} has stepped back."
    return start_milestone(flag_path, plan_key, milestone.pk, then_pause=reason, caller=caller)


@transactional
def turn_off(flag_path: FlagPath, plan_key: str, *, caller: Caller) -> ReleasePlan:
    """Pauses the plan, and turns the flag off in the environment. Raises NotFound, NoAccess."""
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    disable_flag(*flag_path, caller=caller)
    if plan.state == State.RUNNING:
        enter_pause(plan, f"{caller.name} has turned {flag_path.feature} off.", caller)
    return plan


def remove_plan(flag_path: FlagPath, plan_key: str, *, keep_strategies: bool = False, caller: Caller) -> None:
    """Removes the plan and, unless they are to stay, the strategies of its active milestone that are still its own.

    Raises NotFound, NoAccess.
    """
    with through_gate(flag_path, "deleteReleasePlan", {"planId": plan_key}, is_approved=False):
        _remove(flag_path, plan_key, keep_strategies=keep_strategies, caller=caller)


@transactional
def _remove(flag_path: FlagPath, plan_key: str, *, keep_strategies: bool, caller: Caller) -> None:
    plan = access_plan_for_update(flag_path, plan_key, DELETE, caller)
    before = plan_document(plan)
    if not keep_strategies and plan.active is not None:
        plan.strategy_ids = list_own_strategies(plan, read_plans(plan.flag, plan.environment_id))
        write_strategies(plan, Milestone(strategies=[]), caller)
    record_plan(EventType.RELEASE_PLAN_REMOVED, plan, caller, before=before)
    plan.delete()


@transactional
def set_transition(
    flag_path: FlagPath,
    milestone_key: str,
    transition: Mapping[str, Any] | None,
    *,
    target: str = "",
    caller: Caller,
) -> ReleasePlan:
    """Says what the milestone after this one waits for; None: for somebody who starts it.

    ``target``: the id of the next milestone, if the caller names it. Raises NotFound, NoAccess, ValidationError.
    """
    flag = access_flag_in(flag_path, UPDATE, caller)
    plan = find_plan_with(flag, flag_path.environment, milestone_key)
    return edit_transition(plan, milestone_key, transition, target=target, caller=caller)


def edit_transition(
    plan: ReleasePlan, milestone_key: str, transition: Any, *, target: str = "", caller: Caller
) -> ReleasePlan:
    plan = access_plan_for_update(get_flag_path(plan), plan.pk, UPDATE, caller)
    check_problems(transition_problems(transition, "transitionCondition"))
    milestone = find_milestone(plan, milestone_key)
    following = next((each for each in plan.milestones.all() if each.place > milestone.place), None)
    if target and (following is None or following.pk != target):
        raise ValidationError.at("targetMilestone", f"must be {following.pk if following else 'left out'}")
    before, milestone.transition = milestone.transition, tidy_transition(transition)
    if before == milestone.transition:
        return plan
    milestone.save(update_fields=["transition"])
    note_edit(plan)
    record_skip(get_flag_path(plan))
    if plan.active_id == milestone.pk:
        plan.active = milestone
    if plan.state == State.RUNNING:
        finish_if_over(plan)
    save_plan(plan, timezone.now())
    record_plan(
        EventType.MILESTONE_PROGRESSION_CHANGED,
        plan,
        caller,
        subject=milestone.name,
        before={"transition": before},
        after={"transition": milestone.transition},
    )
    return find_plan(plan.flag, plan.environment_id, plan.pk)


def _read_plan(flag_path: FlagPath, plan_key: str, caller: Caller) -> ReleasePlan:
    flag = access_flag(
        caller,
        flag_path.project,
        flag_path.feature,
        archived=False,
        permission=UPDATE,
        environment=flag_path.environment,
    )
    return find_plan(flag, flag_path.environment, plan_key)
