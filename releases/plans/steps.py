"""Makes a milestone the active one of its plan, or predicts that, and pauses plans: for people and the background task.

The strategies of the active milestone are strategies of the flag, so SDKs, the playground, history and the gate need
not know about plans. They keep their ids from step to step, so that users keep the flag.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import zip_longest
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import change_once, consistent_reads
from flagadmin.core.errors import AppError, InvalidOperation, NotFound, pluralize
from flagadmin.core.unreadable_values import check_values
from groups.access import Caller, Permission
from projects.access import find_project_environment
from projects.definitions import Definitions, read_definitions
from projects.fingerprint import UNFORESEEN, Fingerprint, take_fingerprint
from projects.models import Flag
from projects.states import get_content, list_fresh_ids
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import merge_strategy
from projects.strategies.write import change_flag
from releases.models import Milestone, ReleasePlan
from releases.plans.queries import (
    FlagPath,
    PlanSnapshot,
    find_by_key,
    find_following,
    get_flag_path,
    take_snapshot,
)
from releases.requests.impact import Measured, add_near, measure_difference
from releases.targets import Predicted
from releases.templates.actions import MilestonePlanner, get_zone


def plan_strategies(
    planned: PlannedFlag, own: Iterable[str], wanted: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Plans the ``wanted`` strategies of a milestone in place of a plan's ``own``, and returns their ids.

    Continued ones keep their ids. Raises ValidationError.
    """
    stored, ids = {strategy["id"] for strategy in planned.strategies}, []
    kept = [key for key in own if key in stored]
    for key, values in zip_longest(kept, map(get_content, wanted)):
        if values is None:
            planned.remove_strategy(key)
        elif key is None:
            ids.append(planned.add_strategy(values)["id"])
        else:
            ids.append(planned.edit_strategy(key, partial(merge_strategy, values=values))["id"])
    return ids


def draft_strategies(
    state: Predicted, name: str, own: Iterable[str], wanted: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Drafts `plan_strategies`. Added strategies get temporary ids."""
    planned = state.plan_flag(name)
    planned.make_id = list_fresh_ids({strategy["id"] for strategy in planned.strategies}).__next__
    ids = plan_strategies(planned, own, wanted)
    state.change(name, *planned.made)
    return ids


def draft_milestone(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> PlanSnapshot:
    """Gives the flag the milestone's strategies. Returns the plan that has them. Raises ValidationError."""
    ids = draft_strategies(state, name, plan.strategy_ids, milestone.strategies)
    return replace(plan, strategy_ids=ids)


def find_strategy(milestone: Milestone, key: str) -> dict[str, Any]:
    """Raises NotFound."""
    for strategy in milestone.strategies:
        if strategy["id"] == key:
            return dict(strategy)
    raise NotFound(f"Milestone {milestone.name} has no strategy {key}.")


def edit_in_memory(flag: Flag, milestone: Milestone, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Sets members of a strategy of the milestone from the payload, which has its id, and returns it.

    Stores nothing. Raises NotFound, ValidationError.
    """
    before = find_strategy(milestone, payload["id"])
    planner = MilestonePlanner(flag.project_id, flag)
    after, problems = planner.plan(merge_strategy(before, payload), "", before["sortOrder"])
    check_values(problems)
    milestone.strategies = [after if each["id"] == after["id"] else each for each in milestone.strategies]
    return after


def find_plan_ahead(state: Predicted, name: str, payload: Mapping[str, Any]) -> PlanSnapshot:
    """Finds a plan by its id, or by a milestone's. Raises NotFound."""
    if "planId" in payload:
        key = payload["planId"]
        return find_by_key(state.plans(name), key, f"{name} has no release plan {key}.")
    source = payload["sourceMilestone"]
    for plan in state.plans(name):
        if any(milestone.pk == source for milestone in plan.milestones):
            return plan
    raise NotFound(f"{name} has no milestone {source}.")


def keep_plan(state: Predicted, name: str, edited: PlanSnapshot) -> None:
    state.set_plans(name, [edited if plan.pk == edited.pk else plan for plan in state.plans(name)])


def edit_plan(state: Predicted, name: str, payload: Any) -> tuple[PlanSnapshot, Milestone]:
    """The plan with one edited strategy of a milestone, and this milestone."""
    plan = find_plan_ahead(state, name, payload)
    milestone = copy(plan.milestone(payload["milestoneId"]))
    edit_in_memory(Flag(name=name, project=state.project_environment.project), milestone, payload)
    return plan.with_milestone(milestone), milestone


def foresee_milestone(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> Fingerprint:
    """UNFORESEEN if the milestone cannot be started. The state has its segments, and the flags near this one."""
    after = state.copy()
    after.edit(name, enabled=True)
    try:
        draft_milestone(after, name, plan, milestone)
    except AppError:
        return UNFORESEEN
    after.edit(name, enabled=True)  # an earlier step may have turned it off
    return take_fingerprint(after.definitions(), {name})


def measure_start(plan: ReleasePlan, milestone: Milestone, *, now: datetime) -> Measured:
    """Raises ValidationError if the milestone's strategies cannot be stored."""
    with consistent_reads():
        before, after = predict_start(plan, milestone)
    return measure_difference(plan.environment_id, before, after, now=now)


def predict_start(plan: ReleasePlan, milestone: Milestone) -> tuple[Definitions, Definitions]:
    """The flag and those near it, stored and after starting the milestone. Raises ValidationError."""
    state = read_plan_state(plan)
    draft_milestone(state, plan.flag.name, take_snapshot(plan), milestone)
    return state.start, state.definitions()


def read_plan_state(plan: ReleasePlan) -> Predicted:
    """The flag and those near it as stored, with the segments of all milestones."""
    project_id, environment = plan.flag.project_id, plan.environment_id
    segments = set[int]().union(*(milestone.list_segments() for milestone in plan.milestones.all()))
    names = add_near({plan.flag.name})
    stored = read_definitions([project_id], environment, flags=names, segments=segments)
    return Predicted(find_project_environment(project_id, environment), stored)


def draft_greatest(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the named or later milestone with the greatest effect: all steps are reviewed at once."""
    plan = find_plan_ahead(state, name, payload)
    milestones = plan.milestones
    if "milestoneId" in payload:
        first = plan.milestone(payload["milestoneId"])
        milestones = [milestone for milestone in milestones if milestone.place >= first.place]
    _draft_greatest(state, name, plan, milestones)


def draft_greatest_edited(state: Predicted, name: str, payload: Any) -> None:
    """Drafts the milestone with the greatest effect, in a plan with one edited strategy."""
    plan, _ = edit_plan(state, name, payload)
    _draft_greatest(state, name, plan, plan.milestones)


def _draft_greatest(state: Predicted, name: str, plan: PlanSnapshot, milestones: Sequence[Milestone]) -> None:
    greatest = max(milestones, key=lambda milestone: _greatness(state, name, plan, milestone))
    keep_plan(state, name, draft_milestone(state, name, plan, greatest))


def _greatness(state: Predicted, name: str, plan: PlanSnapshot, milestone: Milestone) -> tuple[int, int]:
    """Measures the total change once the milestone starts, including all earlier ones."""
    after, environment = state.copy(), state.environment
    draft_milestone(after, name, plan, milestone)
    measured = measure_difference(environment, state.start, after.definitions(), now=timezone.now())
    return len(measured.effects.broken), measured.who.affected


Transition = Mapping[str, Any]


def find_opening(transition: Transition, since: datetime) -> datetime:
    """The earliest start of the next milestone, if the previous one has been active since then."""
    return _open_from(transition, since + timedelta(minutes=transition.get("intervalMinutes") or 0))


def find_next_opening(transition: Transition, since: datetime, now: datetime) -> datetime:
    """The same, but not before now: past windows were missed."""
    return _open_from(transition, max(now, find_opening(transition, since)))


def _open_from(transition: Transition, moment: datetime) -> datetime:
    """The first moment from then on within the window, if there is one."""
    window = transition.get("window")
    if window is None:
        return moment
    zone = get_zone(window)
    local = moment.astimezone(zone)
    for days in range(15):  # the only day of a week may lack this time, because clocks go forward
        day = local.date() + timedelta(days=days)
        begin, end = _find_bounds(window, day, zone)
        if day.isoweekday() in window["days"] and begin < end and end > moment:
            return max(moment, begin)
    raise AssertionError("a window has at least one day of the week")


def _find_bounds(window: Mapping[str, Any], day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The opening and closing times of the window on that day."""
    begin, end = (
        find_moment(datetime.combine(day, time.fromisoformat(window[name])), zone) for name in ("from", "to")
    )
    return begin, end


def find_moment(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which clocks first show a local time, or skip it when they go forward."""
    later, earlier = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if earlier >= later:  # clocks show it, perhaps twice
        return later
    offset = earlier.astimezone(zone).utcoffset()
    while later - earlier > timedelta(seconds=1):
        middle = earlier + (later - earlier) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            earlier = middle
        else:
            later = middle
    return later.replace(microsecond=0)


def is_open(window: Mapping[str, Any], moment: datetime) -> bool:
    return _open_from({"window": window}, moment) == moment


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
    change_once()
    plan.strategy_ids = change_flag(
        *get_flag_path(plan),
        Permission.UPDATE_FEATURE_STRATEGY,
        lambda planned: plan_strategies(planned, plan.strategy_ids, milestone.strategies),
        caller=caller.with_all_rights(),
    )


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
    record_at(get_flag_path(plan), kind, caller, subject=subject or plan.name, before=before, after=after)


def record_at(
    flag_path: FlagPath,
    kind: EventType,
    caller: Caller,
    *,
    subject: str,
    before: Any = None,
    after: Any = None,
) -> None:
    project, feature, environment = flag_path
    place: Any = {"project": project, "environment": environment, "feature": feature}
    record(Event(type=kind, **place, subject=subject, before=before, after=after), actor=caller)
