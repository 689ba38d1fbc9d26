"""Makes a milestone the active one of its plan, and pauses plans: for people, and for the background task.

The strategies of the active milestone are strategies of the flag: SDKs, the playground, history and the gate need to
know nothing of plans. They keep their ids from step to step, and whoever has the flag keeps it.
"""

from datetime import datetime, timedelta
from itertools import zip_longest
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
from releases.plans.drafts import without_identity
from releases.plans.impact import measure_start
from releases.plans.queries import find_following
from releases.plans.timing import find_next_opening

State = ReleasePlan.State
LOOK_EVERY = timedelta(minutes=1)
"""The interval for checking safeguards."""


def enter_milestone(plan: ReleasePlan, milestone: Milestone, caller: Caller, *, passed: bool = False) -> None:
    """Makes the milestone the active one, with an event of who changes. The plan must be locked with its flag.

    ``passed``: the one before has held as long as it should. Raises InvalidOperation if that would break expectations,
    and the plan pauses for them.
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
    """A plan is done with its last milestone, unless that is to hold for a time."""
    if plan.active is not None and plan.active.transition is None and find_following(plan) is None:
        plan.state = State.DONE


def write_strategies(plan: ReleasePlan, milestone: Milestone, caller: Caller) -> None:
    """Makes the flag's strategies that are the plan's the milestone's. Those that go on keep their ids."""
    maker = caller.with_all_rights()
    rows = Strategy.objects.filter(pk__in=plan.strategy_ids, flag=plan.flag, environment=plan.environment_id)
    stored = {str(key) for key in rows.values_list("pk", flat=True)}
    kept = [key for key in plan.strategy_ids if key in stored]
    extra, plan.strategy_ids = kept[len(milestone.strategies) :], []
    for document, key in zip_longest(milestone.strategies, kept[: len(milestone.strategies)]):
        values = without_identity(document)
        if key is None:
            key = add_strategy(*get_flag_path(plan), values, caller=maker)["id"]
        else:
            update_strategy(*get_flag_path(plan), key, values, caller=maker)
        plan.strategy_ids.append(key)
    for key in extra:
        remove_strategy(*get_flag_path(plan), key, caller=maker)


def save_plan(plan: ReleasePlan, now: datetime) -> None:
    plan.look_at = find_next_look(plan, now)
    plan.save()


def find_next_look(plan: ReleasePlan, now: datetime) -> datetime | None:
    """Finds when the background task looks at the plan: when a step may be due, and at safeguards every minute."""
    if plan.state != State.RUNNING or plan.active is None or plan.since is None:
        return None
    looks = [now + LOOK_EVERY] if plan.safeguards.all() else []
    if plan.active.transition:
        looks.append(find_next_opening(plan.active.transition, plan.since, now))
    return min(looks, default=None)


def enter_pause(plan: ReleasePlan, reason: str, caller: Caller) -> None:
    """No step is taken until somebody goes on."""
    now = timezone.now()
    plan.state, plan.reason, plan.paused_at = State.PAUSED, reason, plan.paused_at or now
    save_plan(plan, now)
    record_plan(EventType.RELEASE_PLAN_PAUSED, plan, caller, after={"reason": reason})


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
