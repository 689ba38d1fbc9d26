"""Tells on forms and requests what becomes of a release plan whose flag they change."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from django.urls import reverse

from projects.projects.queries import needs_request
from releases.models import ReleasePlan
from releases.plans.queries import find_following

State = ReleasePlan.State
CHANGE, ON, OFF, ARCHIVE = "change", "on", "off", "archive"
"""What happens to the flag."""
MAX_PLANS = 5


class TouchedPlan(NamedTuple):
    """A sentence about a plan, without its end: ``Release plan 10 → 25 → 100 % is at step 1``; what becomes of it."""

    name: str
    url: str
    standing: str
    then: str


def find_touched_plans(flags: Collection[str], environment: str, what: str) -> Iterator[TouchedPlan]:
    """The started, unfinished plans of these flags in an environment, or in all with "". Two queries, and one each."""
    plans = ReleasePlan.objects.filter(flag__name__in=list(flags), state__in=(State.RUNNING, State.PAUSED))
    if environment:
        plans = plans.filter(environment=environment)
    for plan in (
        plans.select_related("flag", "active").prefetch_related("milestones").order_by("pk")[:MAX_PLANS]
    ):
        milestones = list(plan.milestones.all())
        number = 1 + milestones.index(plan.active) if plan.active in milestones else 1
        paused = "is paused" if plan.state == State.PAUSED else "is"
        of_flag = f" of {plan.flag.name}" if len(flags) > 1 else ""
        there = "" if environment else f" in {plan.environment_id}"
        yield TouchedPlan(
            f"Release plan {name_steps([milestone.name for milestone in milestones])}{of_flag}",
            reverse("plan", args=[plan.flag.project_id, plan.flag.name, plan.pk]),
            f"{paused} at step {number}{there}",
            _foresee(plan, what),
        )


def name_steps(names: Collection[str]) -> str:
    """``10 → 25 → 100 %``"""
    if all(name.endswith(" %") for name in names):
        return f"{' → '.join(name.removesuffix(' %') for name in names)} %"
    return " → ".join(names)


def _foresee(plan: ReleasePlan, what: str) -> str:
    if what == OFF:
        return "it waits while the flag is off"
    if what == ARCHIVE:
        return "it stops while the flag is archived"
    if what == ON:
        return "it continues once the flag is on" if plan.state == State.RUNNING else ""
    following = find_following(plan)
    if following is None:
        return ""
    if needs_request(plan.flag.project_id, [plan.environment_id]):
        return f"this would pause it before {following.name}"
    return f"its next step, {following.name}, replaces this"
