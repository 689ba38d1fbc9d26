"""Starts milestones of release plans; pauses, edits and removes plans.

Validates the steps of a strategy, and whether a plan can start or continue.

Release plans in the API's form, with the reference server's shape.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.change_options import is_applied_to
from flagadmin.core.db.transactions import change_once, transactional
from flagadmin.core.document import Document
from flagadmin.core.errors import Conflict, InvalidOperation, Problem, ValidationError, check_problems
from flagadmin.core.http.responses import iso
from groups.access import Caller, Permission
from projects.access import access_flag
from projects.flags.environments.actions import disable_flag
from releases.models import Milestone, ReleasePlan
from releases.plans.approval import (
    explain_haste,
    explain_moved,
    is_approved_step,
    is_let_through,
    note_approval,
    note_edit,
    record_skip,
    through_gate,
)
from releases.plans.progress import get_standing
from releases.plans.queries import (
    FlagPath,
    access_flag_in,
    access_plan_for_update,
    find_milestone,
    find_plan,
    find_plan_with,
    find_preceding,
    get_flag_path,
    read_plans,
)
from releases.plans.steps import (
    edit_in_memory,
    enter_hold,
    enter_milestone,
    enter_pause,
    find_strategy,
    finish_if_over,
    record_plan,
    save_plan,
    write_strategies,
)
from releases.safeguards.queries import safeguard_document
from releases.templates.actions import MAX_MILESTONES, tidy_transition, transition_problems
from releases.templates.queries import milestone_document

State = ReleasePlan.State
UPDATE, DELETE = Permission.UPDATE_FEATURE_STRATEGY, Permission.DELETE_FEATURE_STRATEGY


def start_milestone(
    flag_path: FlagPath, plan_key: str, milestone_key: str, *, then_pause: str = "", caller: Caller
) -> ReleasePlan:
    """Makes the milestone's strategies the flag's. ``then_pause``: why the plan pauses afterwards.

    Raises NotFound, NoAccess, ValidationError, Conflict. If changes need a change request, it is refused unless the
    plan is approved and this is the previous milestone, or the next one when it is due; callers who may apply
    requests need not wait. If the result is no longer the approved one, the plan is held, and Conflict gives the
    reason.
    """
    plan = _read_plan(flag_path, plan_key, caller)
    milestone = find_milestone(plan, milestone_key)
    is_approved, haste = is_approved_step(plan, milestone), ""
    if is_applied_to(flag_path.project, flag_path.environment):
        is_approved = False  # the request approves it again
    elif is_approved and is_let_through(flag_path, caller):
        is_approved = not explain_moved(plan, milestone)
    elif is_approved:
        haste = explain_haste(plan, milestone, caller)
        is_approved = not haste
    payload = {"planId": plan_key, "milestoneId": milestone_key}
    with through_gate(flag_path, "startMilestone", payload, is_approved=is_approved, why=haste):
        plan, refusal = _start(flag_path, plan_key, milestone_key, is_approved, then_pause, caller)
    if refusal is not None:
        raise refusal
    return plan


@transactional
def _start(
    flag_path: FlagPath, plan_key: str, milestone_key: str, is_approved: bool, then_pause: str, caller: Caller
) -> tuple[ReleasePlan, Conflict | None]:
    """Returns a refusal instead of raising it, so that the plan's hold is committed."""
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    milestone = find_milestone(plan, milestone_key)
    if is_approved and not is_approved_step(plan, milestone):
        raise Conflict("The release plan has just been changed. Look at it again.")
    check_startable(plan, milestone, read_plans(plan.flag, plan.environment_id).exclude(pk=plan.pk))
    if is_approved and (reason := explain_moved(plan, milestone)):
        enter_hold(plan, reason, caller)
        return plan, Conflict(f"{milestone.name} was not started, and the release plan is held. {reason}")
    plan.by, plan.by_name, plan.is_personal = caller.user, caller.name, caller.user is not None
    enter_milestone(plan, milestone, caller)
    if not is_approved:
        note_approval(plan, is_approved=is_let_through(flag_path, caller), caller=caller)
        plan.save(update_fields=["approved", "fingerprints", "request"])
    if then_pause:
        enter_pause(plan, then_pause, caller)
    return plan, None


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
    """Resumes the plan and the active milestone's time. Safeguards read reports from now on.

    Raises NotFound, NoAccess, InvalidOperation.
    """
    plan = access_plan_for_update(flag_path, plan_key, UPDATE, caller)
    check_paused(plan)
    _, since = get_standing(plan)
    now = timezone.now()
    plan.since = since + (now - (plan.paused_at or now))
    plan.state, plan.reason, plan.paused_at, plan.numbers_from = State.RUNNING, "", None, now
    plan.by, plan.by_name, plan.is_personal = caller.user, caller.name, caller.user is not None
    if is_let_through(flag_path, caller):
        note_approval(plan, is_approved=True, caller=caller)
    finish_if_over(plan)
    save_plan(plan, now)
    record_plan(EventType.RELEASE_PLAN_RESUMED, plan, caller)
    return plan


def step_back(flag_path: FlagPath, plan_key: str, *, caller: Caller) -> ReleasePlan:
    """Starts the milestone before the active one, and pauses. Raises the errors of `start_milestone`."""
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
    change_once()
    disable_flag(*flag_path, caller=caller)
    if plan.state == State.RUNNING:
        enter_pause(plan, f"{caller.name} has turned {flag_path.feature} off.", caller)
    return plan


def remove_plan(flag_path: FlagPath, plan_key: str, *, keep_strategies: bool = False, caller: Caller) -> None:
    """Removes the plan and, unless they are kept, those strategies of its active milestone that are still its own.

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
    """Sets the condition of the milestone after this one; None: it is started by hand.

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
    note_edit(plan, caller)
    record_skip(get_flag_path(plan), caller)
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


# The strategies of milestones -----------------------------------------------------------------------------------


def edit_milestone_strategy(
    flag_path: FlagPath,
    plan_key: str,
    milestone_key: str,
    key: str,
    values: Mapping[str, Any],
    *,
    caller: Caller,
) -> Milestone:
    """Changes the given members of a milestone's strategy; for the active milestone, the flag's strategy too.

    Raises NotFound, NoAccess, ValidationError. If changes need a change request, editing the active milestone is
    refused, and any other edit ends the approval of the plan.
    """
    payload = {"planId": plan_key, "milestoneId": milestone_key, "id": key, **values}
    with through_gate(flag_path, "updateMilestoneStrategy", payload, is_approved=False):
        return _edit(flag_path, payload, caller)


@transactional
def _edit(flag_path: FlagPath, payload: Mapping[str, Any], caller: Caller) -> Milestone:
    plan = access_plan_for_update(flag_path, payload["planId"], UPDATE, caller)
    milestone = find_milestone(plan, payload["milestoneId"])
    before = find_strategy(milestone, payload["id"])
    after = edit_in_memory(plan.flag, milestone, payload)
    if before == after:
        return milestone
    if plan.active_id == milestone.pk:
        plan.active = milestone
        write_strategies(plan, milestone, caller)
    else:
        record_skip(flag_path, caller)
    milestone.save(update_fields=["strategies"])
    note_edit(plan, caller)
    save_plan(plan, timezone.now())
    record_plan(
        EventType.MILESTONE_STRATEGY_UPDATED, plan, caller, subject=milestone.name, before=before, after=after
    )
    return milestone


class Standing(Protocol):
    """A release plan, stored or predicted."""

    @property
    def pk(self) -> Any: ...

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def active_id(self) -> str | None: ...

    @property
    def strategy_ids(self) -> Sequence[str]: ...


def check_startable(plan: Standing, milestone: Milestone, others: Iterable[Standing]) -> None:
    """``others``: the flag's plans in the environment. Raises InvalidOperation, Conflict."""
    if plan.active_id == milestone.pk:
        raise InvalidOperation(f"Milestone {milestone.name} is active already.")
    if plan.state == State.DONE and any(other.state != State.DONE for other in others):
        raise Conflict("The flag has another release plan in the environment.")


def check_paused(plan: Standing) -> None:
    """Raises InvalidOperation."""
    if plan.state != State.PAUSED:
        raise InvalidOperation(f"Release plan {plan.name} is {plan.state}: only a paused one can go on.")


def list_own_strategies(plan: Standing, plans: Iterable[Standing]) -> list[str]:
    """The flag's strategies that belong to the plan. Those of a completed one may belong to another plan by now.

    ``plans``: the flag's plans in the environment, newest first.
    """
    if plan.state != State.DONE:
        return list(plan.strategy_ids)
    taken: set[str] = set()
    is_newer = True
    for other in plans:
        if other.pk == plan.pk:
            is_newer = False
        elif is_newer or other.state != State.DONE:
            taken.update(other.strategy_ids)
    return [key for key in plan.strategy_ids if key not in taken]


class Steps(NamedTuple):
    """A strategy in steps: the percentage of users at each, and the condition of each."""

    strategy: Mapping[str, Any]
    rollouts: Sequence[int]
    transition: Mapping[str, Any] | None
    pause_if_broken: bool = False


def check_rollouts(rollouts: Sequence[int]) -> None:
    """Raises ValidationError."""
    check_problems(_rollouts_problems(rollouts))


def _rollouts_problems(rollouts: Sequence[int]) -> Iterator[Problem]:
    if not rollouts or any(not 1 <= rollout <= 100 for rollout in rollouts):
        yield Problem("rollouts", "must be numbers from 1 to 100")
    elif list(rollouts) not in (rising := sorted(set(rollouts)), rising[::-1]):
        yield Problem("rollouts", "must increase, or decrease, from step to step")
    elif len(rollouts) > MAX_MILESTONES:
        yield Problem("rollouts", f"must be at most {MAX_MILESTONES} steps, not {len(rollouts)}")


def plan_document(plan: ReleasePlan) -> Document:
    return {
        "id": plan.pk,
        "discriminator": "plan",
        "name": plan.name,
        "description": plan.description or None,
        "featureName": plan.flag.name,
        "environment": plan.environment_id,
        "createdByUserId": plan.author_id or 0,
        "createdAt": iso(plan.created_at),
        "activeMilestoneId": plan.active_id,
        "releasePlanTemplateId": plan.template_key,
        "state": plan.state,
        "reason": plan.reason,
        "pauseIfExpectationBreaks": plan.pause_if_broken,
        "milestones": [
            milestone_document(milestone, plan.paused_at if milestone.pk == plan.active_id else None)
            for milestone in plan.milestones.all()
        ],
        "safeguards": [safeguard_document(safeguard) for safeguard in plan.safeguards.all()],
    }
