"""Release plans for tests, of flag cart in production of the shop."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from groups.access import Caller
from projects.models import Flag, FlagEnvironment, Strategy
from projects.models.versions import VERSIONS, StrategyVersion
from releases.models import Milestone, ReleasePlan
from releases.plans.actions import start_milestone
from releases.plans.add import Steps, add_steps
from releases.plans.queries import FlagPath
from tests.support.playground import live_flag

PLACE = FlagPath("shop", "cart", "production")
DAY = timedelta(days=1)
Move = Callable[[timedelta], datetime]
WHO = Caller.system()


def cart(rollout: int = 5, **parameters: str) -> Flag:
    """On for some of the users in production."""
    given = {"rollout": str(rollout), "stickiness": "userId", "groupId": "carts", **parameters}
    return live_flag("cart", strategies=[{"name": "flexibleRollout", "parameters": given}])


def strategy_of(flag: str = "cart") -> Strategy:
    return Strategy.objects.get(flag__name=flag, environment="production")


def rollout_of(flag: str = "cart") -> int:
    return int(strategy_of(flag).parameters["rollout"])


def planned(*rollouts: int, caller: Caller = WHO, place: FlagPath = PLACE, **transition: Any) -> ReleasePlan:
    """A plan of the flag's strategy: by default, a day at each step."""
    steps = Steps({}, rollouts or (5, 25, 50, 100), transition or {"intervalMinutes": 1440})
    return add_steps(place, str(strategy_of(place.feature).pk), steps, caller=caller)


def started(*rollouts: int, caller: Caller = WHO, place: FlagPath = PLACE, **transition: Any) -> ReleasePlan:
    plan = planned(*rollouts, caller=caller, place=place, **transition)
    return start_milestone(place, plan.pk, plan.milestones.all()[0].pk, caller=caller)


def move_all(at: datetime) -> None:
    """All present rows count as unchanged since this moment."""
    with connection.cursor() as cursor:
        for versions in VERSIONS.values():
            cursor.execute(f"UPDATE {versions._meta.db_table} SET valid_from = %s", [at])


def set_since(share: int, at: datetime) -> None:
    """The strategy of cart gets another percentage at a moment."""
    strategy = Strategy.objects.get(flag__name="cart")
    strategy.parameters = strategy.parameters | {"rollout": f"{share}"}
    strategy.save()
    closed = StrategyVersion.objects.filter(id=strategy.pk).order_by("-valid_to")[1]
    still = StrategyVersion.objects.filter(id=strategy.pk, valid_to__gt=timezone.now())
    StrategyVersion.objects.filter(id=strategy.pk, valid_to=closed.valid_to).update(valid_to=at)
    still.update(valid_from=at)


def reload(plan: ReleasePlan) -> ReleasePlan:
    return ReleasePlan.objects.select_related("flag", "active").get(pk=plan.pk)


def state_of(plan: ReleasePlan) -> tuple[str, str | None]:
    """Its state, and its active milestone."""
    found = reload(plan)
    return found.state, found.active.name if found.active else None


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Move:
    """Moves the clock of this process, which otherwise stands. It begins on a Tuesday at 08:00 UTC."""
    moment = [datetime.fromisoformat("2026-11-24T08:00:00+00:00")]

    def move(by: timedelta) -> datetime:
        moment[0] += by
        return moment[0]

    monkeypatch.setattr(timezone, "now", lambda: moment[0])
    return move


def copy_plan(plan: ReleasePlan, names: Sequence[str]) -> list[ReleasePlan]:
    """Started plans of new flags with these names, like this one in all else."""
    now, place = timezone.now(), {"environment_id": plan.environment_id}
    project, [stored] = plan.flag.project, plan.flag.strategies.filter(environment=plan.environment_id)
    flags = Flag.objects.bulk_create(Flag(name=name, project=project, created_at=now) for name in names)
    FlagEnvironment.objects.bulk_create(FlagEnvironment(flag=flag, enabled=True, **place) for flag in flags)
    strategies = Strategy.objects.bulk_create(
        Strategy(flag=flag, name=stored.name, parameters=stored.parameters, **place) for flag in flags
    )
    kept = {name: getattr(plan, name) for name in ("name", "state", "since", "numbers_from", "by_name")}
    plans = ReleasePlan.objects.bulk_create(
        ReleasePlan(flag=flag, strategy_ids=[str(strategy.pk)], look_at=now, **place, **kept)
        for flag, strategy in zip(flags, strategies, strict=True)
    )
    steps = plan.milestones.values("name", "place", "strategies", "transition", "started_at")
    milestones = Milestone.objects.bulk_create(
        Milestone(plan=copy, **step) for copy in plans for step in steps
    )
    for first in (each for each in milestones if each.started_at and each.plan):
        first.plan.active = first
    ReleasePlan.objects.bulk_update(plans, ["active"])
    return plans
