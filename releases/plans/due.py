"""Takes due steps of running plans, on whichever server comes first.

Every server looks every second. A server claims a plan for a minute and reads its safeguards without a lock. Then it
locks the project and the plan, checks that the plan has not moved on, and takes the step in that transaction. If a
server dies in between, it has changed nothing, and another one looks a minute later.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from django.utils import timezone

from flagadmin.core.audit.events import EventType
from flagadmin.core.change_checks.comments import MAX_LENGTH
from flagadmin.core.change_options import changing
from flagadmin.core.db.transactions import change_once, transactional
from flagadmin.core.installation.state import check_writable
from groups.access import Caller
from projects.flags.environments.actions import disable_flag
from projects.flags.queries import read_strategy_documents
from projects.models import Strategy
from projects.states import get_content
from releases.attempts import SOON, Attempts, claim_due, wait_briefly_for_locks, waiting_for_database
from releases.models import ReleasePlan, Safeguard
from releases.plans.approval import explain_lapse, explain_moved
from releases.plans.progress import APPLY, UPDATE, find_step, get_standing, may_be_due, say_minutes
from releases.plans.queries import find_preceding, get_flag_path, is_approved
from releases.plans.steps import (
    LOOK_EVERY,
    enter_hold,
    enter_milestone,
    enter_pause,
    find_next_look,
    record_plan,
    save_plan,
)
from releases.requests.approvals import lock_project
from releases.safeguards.judge import Judge, Verdict, find_breach, look_at_flags

State, Action = ReleasePlan.State, Safeguard.Action
LONG = timedelta(hours=1)
_outage = threading.Event()
"""Set during an outage of the database, which is logged once."""


BY_PLAN = Caller.system("Release plan")
"""Takes steps started by a user, whose permissions are checked before."""


def look_at_due() -> None:
    """Looks at the due plans and safeguards of flags."""
    with waiting_for_database("Release plans", _outage):
        check_writable()  # steps are taken once maintenance is over
        look_at_flags()
        for keys in claim_due("releases_releaseplan", LOOK_EVERY, "state = 'running'"):
            _look_at(keys)


def _look_at(keys: Sequence[str]) -> None:
    now = timezone.now()
    judge, attempts = Judge(now), Attempts()
    plans = ReleasePlan.objects.filter(pk__in=keys).select_related("flag", "active", "by")
    for plan in plans.prefetch_related("milestones", "safeguards").order_by("pk"):
        if (act := _choose_act(plan, judge.judge(plan), now)) is None:
            _look_again(plan, now)
        else:
            attempts.attempt(plan.pk, plan.flag.project_id, act, partial(note_failure, plan))
    ReleasePlan.objects.filter(pk__in=attempts.left, state=State.RUNNING).update(look_at=now + SOON)


def _choose_act(plan: ReleasePlan, verdicts: Sequence[Verdict], now: datetime) -> Callable[[], None] | None:
    """The action to take with the plan now, if any."""
    if (breach := find_breach(verdicts)) is not None:
        return partial(react, plan, breach)
    if may_be_due(plan, now) and find_step(plan, verdicts, now).is_due:
        return partial(take_step, plan)
    return None


def _look_again(plan: ReleasePlan, now: datetime) -> None:
    """Looks sooner than in a minute, or later, depending on the next due time."""
    look_at = find_next_look(plan, now)
    if look_at is not None and look_at > now and look_at != now + LOOK_EVERY:
        ReleasePlan.objects.filter(pk=plan.pk, state=State.RUNNING).update(look_at=look_at)


def take_step(seen: ReleasePlan) -> None:
    """Starts the next milestone, or ends the plan after its last. Does nothing if the plan has changed meanwhile."""
    with changing(approved_in=(seen.flag.project_id, seen.environment_id)):
        _take_step(seen)


@transactional
def _take_step(seen: ReleasePlan) -> None:
    plan, now = _take(seen), timezone.now()
    if plan is None or not (step := find_step(plan, (), now)).is_due:
        return
    caller, reason = BY_PLAN, find_obstacle(plan)
    moved = "" if reason or step.milestone is None else explain_moved(plan, step.milestone)
    with changing(comment=_comment(plan, reason or moved, step.opens)):
        if reason:
            enter_pause(plan, reason, caller)
        elif moved:
            enter_hold(plan, moved, caller)
        elif step.milestone is not None:
            enter_milestone(plan, step.milestone, caller, passed=True)
        else:
            _finish(plan, caller, now)


def _finish(plan: ReleasePlan, caller: Caller, now: datetime) -> None:
    active, _ = get_standing(plan)
    active.passed_at = now
    active.save(update_fields=["passed_at"])
    plan.state = State.DONE
    save_plan(plan, now)
    record_plan(EventType.RELEASE_PLAN_COMPLETED, plan, caller)


def react(seen: ReleasePlan, breach: Verdict) -> None:
    """Carries out a breached safeguard, which always pauses the plan: further steps need approval."""
    with changing(approved_in=(seen.flag.project_id, seen.environment_id)):
        _react(seen, breach)


@transactional
def _react(seen: ReleasePlan, breach: Verdict) -> None:
    plan = _take(seen)
    if plan is None:
        return
    caller = BY_PLAN
    action = breach.safeguard.action if is_approved(plan) else Action.PAUSE
    before = find_preceding(plan)
    with changing(comment=_comment(plan, breach.sentence)):
        if action == Action.TURN_OFF:
            change_once()
            disable_flag(*get_flag_path(plan), caller=caller)
        elif action == Action.STEP_BACK and before is not None and not find_obstacle(plan):
            if moved := explain_moved(plan, before):
                enter_hold(plan, f"{breach.sentence} No step back was taken. {moved}", caller)
                return
            enter_milestone(plan, before, caller)
        enter_pause(plan, breach.sentence, caller)


@transactional
def note_failure(seen: ReleasePlan, reason: str) -> None:
    plan = _take(seen)
    if plan is not None:
        with changing(comment=_comment(plan, reason)):
            enter_pause(plan, reason, BY_PLAN)


def _take(seen: ReleasePlan) -> ReleasePlan | None:
    """The plan, locked with its project, if it has not moved on since it was seen."""
    wait_briefly_for_locks()
    lock_project(seen.flag.project_id)
    rows = ReleasePlan.objects.select_for_update(of=("self",), skip_locked=True)
    rows = rows.filter(pk=seen.pk, state=State.RUNNING, active=seen.active_id, since=seen.since)
    return (
        rows.select_related("flag", "active", "by", "request")
        .prefetch_related("milestones", "safeguards")
        .first()
    )


def find_obstacle(plan: ReleasePlan) -> str:
    """Why no step is taken without a person's help; "" if nothing prevents it."""
    flag, by = plan.flag, plan.by
    if flag.is_archived:
        return f"{flag.name} has been archived."
    who = f"{plan.by_name}, who started it,"
    if plan.is_personal and by is None:
        return f"{who} has been deleted."
    if by is not None:
        if not by.is_active:
            return f"{who} can no longer log in."
        caller, flag_path = Caller(user=by), {"project": flag.project_id, "environment": plan.environment_id}
        if not caller.can(UPDATE, **flag_path) and not caller.can(APPLY, **flag_path):
            return f"{who} may not change strategies there any more."
    if lapse := explain_lapse(plan):
        return lapse
    return (
        "" if has_own_strategies(plan) else f"The plan's strategies of {flag.name} were changed by somebody."
    )


def has_own_strategies(plan: ReleasePlan) -> bool:
    """Whether the plan's strategies of the flag still equal the active milestone's."""
    active, _ = get_standing(plan)
    rows = Strategy.objects.filter(pk__in=plan.strategy_ids, flag=plan.flag, environment=plan.environment_id)
    stored = {document["id"]: get_content(document) for document in read_strategy_documents(rows)}
    wanted = [get_content(strategy) for strategy in active.strategies]
    return [stored.get(key) for key in plan.strategy_ids] == wanted


def _comment(plan: ReleasePlan, reason: str, opens: datetime | None = None) -> str:
    """``opens``: the earliest time of the step. It may be long past, if the plan had to wait or was restored."""
    text = reason or f"Release plan {plan.name}, started by {plan.by_name}"
    waited = timezone.now() - opens if opens else timedelta()
    late = (
        f" ({say_minutes(round(waited.total_seconds() / 3600) * 60)} after it was possible)"
        if waited > LONG
        else ""
    )
    return f"{text[: MAX_LENGTH - len(late)]}{late}"
