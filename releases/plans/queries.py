"""Finds release plans."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from django.db.models import QuerySet

from flagadmin.core.db.lookups import find_best_matches, get_or_404
from flagadmin.core.errors import NotFound
from groups.access import Caller
from projects.models import Flag
from projects.projects.queries import needs_request
from releases.models import Milestone, ReleasePlan, Safeguard

State = ReleasePlan.State
UNFINISHED = (State.PLANNED, State.RUNNING, State.PAUSED)


class Keyed(Protocol):
    @property
    def pk(self) -> Any: ...


Row = TypeVar("Row", bound=Keyed)


def read_plans(flag: Flag, environment: str) -> QuerySet[ReleasePlan]:
    """The plans of the flag in the environment, newest first, with the rows for their documents."""
    plans = ReleasePlan.objects.filter(flag=flag, environment=environment)
    return plans.select_related("flag", "active").prefetch_related("milestones", "safeguards")


def readable_plans(caller: Caller) -> QuerySet[ReleasePlan]:
    """Finds the plans of active flags of readable projects."""
    plans = ReleasePlan.objects.filter(flag__archived_at=None)
    allowed = caller.readable_projects
    return plans if allowed is None else plans.filter(flag__project__in=list(allowed))


def running_plans(caller: Caller) -> QuerySet[ReleasePlan]:
    """The plans that continue automatically or are paused."""
    return readable_plans(caller).filter(state__in=(State.RUNNING, State.PAUSED))


def search_plans(caller: Caller, words: Sequence[str]) -> QuerySet[ReleasePlan]:
    """Searches the unfinished plans by their flag and their name."""
    plans = readable_plans(caller).filter(state__in=UNFINISHED).select_related("flag", "active")
    return find_best_matches(plans, words, "flag__name", "name")


def find_plan(flag: Flag, environment: str, key: str) -> ReleasePlan:
    """Raises NotFound."""
    return get_or_404(
        read_plans(flag, environment), f"{flag.name} has no release plan {key} in {environment}.", pk=key
    )


def find_plan_with(flag: Flag, environment: str, milestone_key: str) -> ReleasePlan:
    """The plan that has the milestone. Raises NotFound."""
    return get_or_404(
        read_plans(flag, environment),
        f"{flag.name} has no milestone {milestone_key} in {environment}.",
        milestones=milestone_key,
    )


def find_milestone(plan: ReleasePlan, key: str) -> Milestone:
    """Raises NotFound."""
    return find_by_key(plan.milestones.all(), key, f"Release plan {plan.name} has no milestone {key}.")


def find_safeguard(plan: ReleasePlan, key: str) -> Safeguard:
    """Raises NotFound."""
    return find_by_key(plan.safeguards.all(), key, f"Release plan {plan.name} has no safeguard {key}.")


def find_by_key(rows: Iterable[Row], key: str, message: str) -> Row:
    """Raises NotFound with the message."""
    for row in rows:
        if row.pk == key:
            return row
    raise NotFound(message)


def find_following(plan: ReleasePlan) -> Milestone | None:
    """The milestone after the active one, or the first. None after the last."""
    place = -1 if plan.active is None else plan.active.place
    return next((milestone for milestone in plan.milestones.all() if milestone.place > place), None)


def find_preceding(plan: ReleasePlan) -> Milestone | None:
    """The milestone before the active one."""
    place = -1 if plan.active is None else plan.active.place
    before = [milestone for milestone in plan.milestones.all() if milestone.place < place]
    return before[-1] if before else None


def is_approved(plan: ReleasePlan) -> bool:
    """Whether the plan's automatic steps need no change request, or have an approved one."""
    return plan.approved or not needs_request(plan.flag.project_id, [plan.environment_id])
