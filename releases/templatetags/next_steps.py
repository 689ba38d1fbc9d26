"""``{% load next_steps %}`` for lists of flags, by the name of the flag.

``{% next_of_rows rows as next_of %}``: what comes next: the step of a release plan, or a change request.
``{% last_changes_of_rows rows as changed_of %}``: who changed it last, and when.
``{% pictures_of_rows rows as pictures_of %}``: its last 14 days, by environment.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.template import Library
from django.utils import timezone

from projects.flags.lists.cells import FlagRow
from projects.history.queries import LastChange, read_last_changes
from releases.models import ReleasePlan
from releases.plans.queries import find_following, running_plans
from releases.plans.steps import find_opening
from releases.requests.queries import find_marks
from releases.timeline.draw import Picture, draw_pictures

register = Library()


class Next(NamedTuple):
    """``at``: when it happens by itself; None if it waits for something."""

    text: str
    url: str
    at: datetime | None = None
    is_held: bool = False
    is_stuck: bool = False


@register.simple_tag(takes_context=True)
def next_of_rows(context: Mapping[str, Any], rows: Sequence[FlagRow]) -> dict[str, Next]:
    """Six queries, and those of requests for each environment that has any."""
    caller, urls = context["caller"], {row.flag.name: row.url for row in rows}
    found: dict[str, Next] = {}
    plans = running_plans(caller).filter(flag__in=[row.flag.pk for row in rows])
    for plan in plans.select_related("flag", "active").prefetch_related("milestones"):
        if plan.state == ReleasePlan.State.PAUSED:
            found[plan.flag.name] = Next(f"{plan.name} paused", urls[plan.flag.name], is_held=True)
        elif following := find_following(plan):
            active = plan.active
            at = (
                find_opening(active.transition, plan.since)
                if active and active.transition and plan.since
                else None
            )
            found[plan.flag.name] = Next(following.name, urls[plan.flag.name], at)
    for mark in find_marks(caller, list(urls)):
        found.setdefault(mark.flag, Next(f"Request {mark.number}", mark.url, mark.at, is_stuck=mark.is_stuck))
    return found


@register.simple_tag
def last_changes_of_rows(rows: Sequence[FlagRow]) -> dict[str, LastChange]:
    return read_last_changes([row.flag.name for row in rows])


@register.simple_tag
def pictures_of_rows(rows: Sequence[FlagRow]) -> dict[str, dict[str, Picture]]:
    return draw_pictures(rows, timezone.now())
