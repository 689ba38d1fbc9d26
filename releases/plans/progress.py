"""Finds the conditions for the next milestone of a running plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from groups.permissions import Permission
from projects.models import FlagEnvironment
from releases.models import Milestone, ReleasePlan
from releases.plans.queries import find_following, is_approved
from releases.plans.steps import find_opening, is_open
from releases.safeguards.judge import Judge, State, Verdict

UPDATE, APPLY = Permission.UPDATE_FEATURE_STRATEGY, Permission.APPLY_CHANGE_REQUEST


class Condition(NamedTuple):
    """A requirement. ``sentence`` tells whether it holds. ``fails``: it will not without a person's action."""

    sentence: str
    holds: bool
    fails: bool = False

    @property
    def css(self) -> str:
        return "holds" if self.holds else "fails" if self.fails else "open"


BY_HAND = Condition("Somebody who starts it.", False)


class Step(NamedTuple):
    """The next step. Without a milestone, it completes the plan. ``opens``: the earliest time; None: by hand."""

    milestone: Milestone | None
    opens: datetime | None
    conditions: Sequence[Condition]

    @property
    def is_due(self) -> bool:
        return self.opens is not None and all(condition.holds for condition in self.conditions)


def find_step(plan: ReleasePlan, verdicts: Sequence[Verdict], now: datetime) -> Step:
    """The step after the active milestone of a plan that is started."""
    active, since = get_standing(plan)
    following, transition = find_following(plan), active.transition
    guarded = [
        Condition(verdict.sentence, verdict.holds, verdict.state == State.BREACHED) for verdict in verdicts
    ]
    if transition is None:
        return Step(following, None, [BY_HAND, *guarded])
    conditions = [
        _held(active, since, now),
        *_window(transition, now),
        *_switch(plan),
        *_approval(plan),
        *guarded,
    ]
    return Step(following, find_opening(transition, since), conditions)


def find_unmet(plan: ReleasePlan, now: datetime) -> list[str]:
    """The unmet conditions of a started plan's next step, in sentences. Excludes starting by hand."""
    if plan.active is None:
        return []
    if plan.state != ReleasePlan.State.RUNNING:
        return [f"The plan is {plan.state}."]
    step = find_step(plan, Judge(now).judge(plan), now)
    unmet = [each.sentence for each in step.conditions if not each.holds and each is not BY_HAND]
    return [f"It waits for: {', '.join(sentence.removesuffix('.') for sentence in unmet)}."] if unmet else []


def get_standing(plan: ReleasePlan) -> tuple[Milestone, datetime]:
    """The active milestone of a started plan, and the start of its time."""
    if plan.active is None or plan.since is None:
        raise AssertionError("a plan that is started has an active milestone")
    return plan.active, plan.since


def may_be_due(plan: ReleasePlan, now: datetime) -> bool:
    """Whether the time for the next step has come, regardless of other conditions. Reads nothing."""
    active, since = get_standing(plan)
    return active.transition is not None and find_opening(active.transition, since) <= now


def _held(active: Milestone, since: datetime, now: datetime) -> Condition:
    minutes = (active.transition or {}).get("intervalMinutes") or 0
    return Condition(f"{say_minutes(minutes)} at {active.name}", now >= since + timedelta(minutes=minutes))


def _window(transition: Mapping[str, Any], now: datetime) -> list[Condition]:
    window = transition.get("window")
    return [] if window is None else [Condition(say_window(window), is_open(window, now))]


def _switch(plan: ReleasePlan) -> list[Condition]:
    """Steps of a disabled flag would affect no one, and safeguards would not work."""
    states = FlagEnvironment.objects.filter(flag=plan.flag, environment=plan.environment_id, enabled=True)
    if states.exists():
        return []
    return [Condition(f"{plan.flag.name} is off in {plan.environment_id}.", False)]


def _approval(plan: ReleasePlan) -> list[Condition]:
    if is_approved(plan):
        return []
    return [Condition("It was changed since it was approved: a change request must start it again.", False)]


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def say_window(window: Mapping[str, Any]) -> str:
    """``Mon to Thu, 09:00–16:00 Europe/Oslo``."""
    days = window["days"]
    names = [_DAYS[day - 1] for day in days]
    in_row = len(days) > 2 and days == list(range(days[0], days[-1] + 1))
    listed = f"{names[0]} to {names[-1]}" if in_row else ", ".join(names)
    return f"{listed}, {window['from']}–{window['to']} {window['zone']}"


def say_minutes(minutes: int) -> str:
    """``5 days``, ``36 hours``, ``1 minute``."""
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes >= size and minutes % size == 0:
            return f"{minutes // size} {unit}{'' if minutes == size else 's'}"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def say_transition(transition: Mapping[str, Any] | None) -> str:
    """``after 1 day, Mon to Thu, 09:00–16:00 Europe/Oslo``; ``by hand``."""
    if transition is None:
        return "by hand"
    minutes, window = transition.get("intervalMinutes"), transition.get("window")
    parts = [f"after {say_minutes(minutes)}" if minutes else "", say_window(window) if window else ""]
    return ", ".join(part for part in parts if part)
