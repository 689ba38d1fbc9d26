"""Finds release plans, and shows what becomes of them when their flags change."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from django.db.models import QuerySet
from django.urls import reverse

from flagadmin.core.db.lookups import find_best_matches, get_or_404
from flagadmin.core.errors import NotFound
from groups.access import Caller, Permission
from projects.access import access_flag_for_update, find_project_environment
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
    return ReleasePlan.objects.filter(caller.match_readable("flag__project"), flag__archived_at=None)


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


@dataclass(frozen=True, slots=True)
class PlanSnapshot:
    """A plan with its milestones and safeguards in their order. ``strategy_ids``: strategies of the flag."""

    pk: str
    name: str
    state: str
    active_id: str | None
    strategy_ids: Sequence[str]
    milestones: Sequence[Milestone]
    safeguards: Sequence[Safeguard]

    def milestone(self, key: str) -> Milestone:
        """Raises NotFound."""
        return find_by_key(self.milestones, key, f"Release plan {self.name} has no milestone {key}.")

    def safeguard(self, key: str) -> Safeguard:
        """Raises NotFound."""
        return find_by_key(self.safeguards, key, f"Release plan {self.name} has no safeguard {key}.")

    def with_milestone(self, edited: Milestone) -> "PlanSnapshot":
        """Replaces the milestone that has the same id."""
        milestones = [edited if each.pk == edited.pk else each for each in self.milestones]
        return replace(self, milestones=milestones)

    def run(self) -> "PlanSnapshot":
        """Running, or completed with its last milestone, unless that lasts for a time."""
        last = self.milestones[-1]
        is_over = self.active_id == last.pk and last.transition is None
        return replace(self, state=ReleasePlan.State.DONE if is_over else ReleasePlan.State.RUNNING)


def take_snapshot(plan: ReleasePlan) -> PlanSnapshot:
    return PlanSnapshot(
        plan.pk,
        plan.name,
        plan.state,
        plan.active_id,
        plan.strategy_ids,
        list(plan.milestones.all()),
        list(plan.safeguards.all()),
    )


def read_snapshots(project_id: str, flag: str, environment: str) -> list[PlanSnapshot]:
    """Reads the plans of the flag in the environment, newest first."""
    plans = ReleasePlan.objects.filter(
        flag__project=project_id, flag__name=flag, flag__archived_at=None, environment=environment
    )
    return [take_snapshot(plan) for plan in plans.prefetch_related("milestones", "safeguards")]


class FlagPath(NamedTuple):
    """A flag in an environment of its project."""

    project: str
    feature: str
    environment: str


class OfFlagPath:
    """A view whose URL names a flag in an environment."""

    kwargs: dict[str, Any]

    @property
    def flag_path(self) -> FlagPath:
        return FlagPath(self.kwargs["project_id"], self.kwargs["name"], self.kwargs["environment"])


def get_flag_path(plan: ReleasePlan) -> FlagPath:
    return FlagPath(plan.flag.project_id, plan.flag.name, plan.environment_id)


def access_plan_for_update(
    flag_path: FlagPath, plan_key: str, permission: Permission, caller: Caller
) -> ReleasePlan:
    """The plan, locked with its flag and project. Raises NotFound, NoAccess."""
    flag = access_flag_in(flag_path, permission, caller)
    ReleasePlan.objects.select_for_update(of=("self",)).filter(pk=plan_key, flag=flag).first()
    return find_plan(flag, flag_path.environment, plan_key)


def access_flag_in(flag_path: FlagPath, permission: Permission, caller: Caller) -> Flag:
    flag = access_flag_for_update(
        caller, flag_path.project, flag_path.feature, permission, environment=flag_path.environment
    )
    find_project_environment(flag_path.project, flag_path.environment)
    return flag


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
