"""Makes a milestone the active one of its plan, and pauses plans: for people, and for the background task.

The strategies of the active milestone are strategies of the flag, so SDKs, the playground, history and the gate need
not know about plans. They keep their ids from step to step, so that users keep the flag.
"""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.errors import InvalidOperation
from flagadmin.core.wording import pluralize
from groups.access import Caller
from projects.models import Strategy
from projects.strategies.actions import add_strategy, remove_strategy, update_strategy
from releases.models import Milestone, ReleasePlan
from releases.plans.access import get_flag_path
from releases.plans.drafts import pair_strategies
from releases.plans.impact import measure_start
from releases.plans.queries import find_following
from releases.plans.timing import find_next_opening

State = ReleasePlan.State
LOOK_EVERY = timedelta(minutes=1)
"""The interval for checking safeguards."""


def enter_milestone(plan: ReleasePlan, milestone: Milestone, caller: Caller, *, passed: bool = False) -> None:
    """Makes the milestone the active one, with an event about the affected users. Lock the plan with its flag before.

    ``passed``: the previous one has completed its time. Raises InvalidOperation if the step would break expectations
    and the plan pauses for that.
    """
    now, before = timezone.now(), plan.active
    measured = measure_start(plan, milestone, now=now)
    if passed and plan.pause_if_broken and (broken := len(measured.effects.broken)):
        raise InvalidOperation(f"{milestone.name} would break {pluralize(broken, 'expectation')}.")
    write_strategies(plan, milestone, caller)
    if before is not None and passed:
        before.passed_at = now
        before.save(update_fields=["passed_at"])
    if any(each.place > milestone.place and each.started_at for each in plan.milestones.all()):
        later = plan.milestones.filter(place__gt=milestone.place)
        later.update(started_at=None, passed_at=None)
    milestone.started_at, milestone.passed_at = now, None
    milestone.save(update_fields=["started_at", "passed_at"])
    plan.active, plan.since, plan.numbers_from = milestone, now, now
    plan.state, plan.reason, plan.paused_at = State.RUNNING, "", None
    finish_if_over(plan)
    save_plan(plan, now)
    document = {
        "plan": plan.name,
        "milestone": milestone.name,
        "strategies": milestone.strategies,
        "whoChanges": measured.document(),
    }
    earlier = {"plan": plan.name, "milestone": before.name} if before else None
    record_plan(
        EventType.RELEASE_PLAN_MILESTONE_STARTED,
        plan,
        caller,
        subject=milestone.name,
        before=earlier,
        after=document,
    )


def finish_if_over(plan: ReleasePlan) -> None:
    """Completes a plan with its last milestone, unless that lasts for a time."""
    if plan.active is not None and plan.active.transition is None and find_following(plan) is None:
        plan.state = State.DONE


def write_strategies(plan: ReleasePlan, milestone: Milestone, caller: Caller) -> None:
    """Replaces the plan's strategies of the flag with the milestone's. Continued ones keep their ids."""
    maker = caller.with_all_rights()
    flag_path, own = get_flag_path(plan), plan.strategy_ids
    rows = Strategy.objects.filter(pk__in=own, flag=plan.flag, environment=plan.environment_id)
    stored = set(map(str, rows.values_list("pk", flat=True)))
    plan.strategy_ids = []
    for key, values in pair_strategies(own, stored, milestone.strategies):
        if values is None:
            remove_strategy(*flag_path, key, caller=maker)
        elif key:
            plan.strategy_ids.append(update_strategy(*flag_path, key, values, caller=maker)["id"])
        else:
            plan.strategy_ids.append(add_strategy(*flag_path, values, caller=maker)["id"])


def save_plan(plan: ReleasePlan, now: datetime) -> None:
    plan.look_at = find_next_look(plan, now)
    plan.save()


def find_next_look(plan: ReleasePlan, now: datetime) -> datetime | None:
    """The next look of the background task: when a step may be due, and every minute for safeguards."""
    if plan.state != State.RUNNING or plan.active is None or plan.since is None:
        return None
    looks = [now + LOOK_EVERY] if plan.safeguards.all() else []
    if plan.active.transition:
        looks.append(find_next_opening(plan.active.transition, plan.since, now))
    return min(looks, default=None)


def enter_pause(plan: ReleasePlan, reason: str, caller: Caller) -> None:
    """Pauses: no step is taken until a user resumes the plan."""
    now = timezone.now()
    plan.state, plan.reason, plan.paused_at = State.PAUSED, reason, plan.paused_at or now
    save_plan(plan, now)
    record_plan(EventType.RELEASE_PLAN_PAUSED, plan, caller, after={"reason": reason})


def enter_hold(plan: ReleasePlan, reason: str, caller: Caller) -> None:
    """Pauses a plan whose next steps are no longer as approved, until it is approved again."""
    plan.approved, plan.fingerprints = False, None
    if plan.state in (State.RUNNING, State.PAUSED):
        enter_pause(plan, reason, caller)
    else:
        save_plan(plan, timezone.now())


def record_plan(
    kind: EventType,
    plan: ReleasePlan,
    caller: Caller,
    *,
    subject: str = "",
    before: Any = None,
    after: Any = None,
) -> None:
    event = Event(
        type=kind,
        project=plan.flag.project_id,
        environment=plan.environment_id,
        feature=plan.flag.name,
        subject=subject or plan.name,
        before=before,
        after=after,
    )
    record(event, actor=caller)
