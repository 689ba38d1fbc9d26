"""The demo's release plans: a running one, and one paused by its safeguard."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta

import orjson

from flagadmin.core.change_options import changing
from flagadmin.demo.clock import at
from groups.access import Caller
from projects.models import ImpactPoint, Strategy
from releases.models import ReleasePlan, ReleaseTemplate
from releases.plans.actions import pause_plan, start_milestone
from releases.plans.add import Steps, add_steps
from releases.plans.queries import FlagPath
from releases.safeguards.actions import set_chart, set_flag_safeguard, set_safeguard
from releases.safeguards.serializers import SafeguardBody
from releases.templates.actions import create_template

DAY = timedelta(days=1)
RUNNING = FlagPath("checkout", "checkout-redesign", "production")
PAUSED = FlagPath("checkout", "coupon-stacking", "production")
WEEKDAYS = {"zone": "Europe/Oslo", "days": [1, 2, 3, 4], "from": "09:00", "to": "16:00"}
WHY = "Failed payments above 0.05: 0.0594 now."


def add_plans(now: datetime, caller: Caller) -> None:
    """Adds the plans once. The flags' results do not change: each plan is at its flag's current percentage."""
    if ReleasePlan.objects.exists() or ReleaseTemplate.objects.exists():
        return
    with at(now - 30 * DAY, "demo-template"):
        create_template(_make_template(), caller=Caller.system())
    for place, days in ((RUNNING, 2), (PAUSED, 6)):
        if (strategy := _find_strategy(place)) is not None:
            _add_plan(place, strategy, now - days * DAY - timedelta(minutes=11), caller)
            ImpactPoint.objects.bulk_create(_make_points(place, now - days * DAY, now))
            _add_charts(place, now - days * DAY, caller)
    if plan := ReleasePlan.objects.filter(flag__name=PAUSED.feature).first():
        with at(now - timedelta(hours=3, minutes=7), "demo-plan-paused"), changing(comment=WHY):
            pause_plan(PAUSED, plan.pk, reason=WHY, caller=caller)


def _add_charts(place: FlagPath, moment: datetime, caller: Caller) -> None:
    """Adds a chart of the flag, a safeguard of the flag, and a chart for everyone."""
    chart = {"title": "Failed payments", "yAxisMin": "zero", "labelSelectors": {}}
    chart |= {"metricName": _name_metric(place), "aggregationMode": "avg", "timeRange": "day"}
    with at(moment, f"demo-charts-{place.feature}"):
        set_chart((place.project, place.feature), chart, caller=caller)
        of_all = {"title": f"Failed payments of {place.feature}", "timeRange": "week", "yAxisMin": "auto"}
        set_chart(None, chart | of_all, caller=Caller.system())
        safeguard = _make_safeguard(place) | {"triggerCondition": {"operator": ">", "threshold": 0.5}}
        skipping = Caller.system().asking(skips_requests=True)
        set_flag_safeguard(place, safeguard | {"action": {"type": "turnOff"}}, caller=skipping)


def _find_strategy(place: FlagPath) -> Strategy | None:
    strategies = Strategy.objects.filter(flag__name=place.feature, environment=place.environment)
    return strategies.filter(name="flexibleRollout", parameters__rollout__in=["5", "10"]).first()


def _add_plan(place: FlagPath, strategy: Strategy, moment: datetime, caller: Caller) -> None:
    share = int(strategy.parameters["rollout"])
    rollouts = [share, *(larger for larger in (25, 50, 100) if larger > share)]
    steps = Steps({}, rollouts, {"intervalMinutes": 5 * 1440, "window": WEEKDAYS})
    with (
        at(moment, f"demo-plan-{place.feature}"),
        changing(comment="Errors stayed flat in development for a week."),
    ):
        plan = add_steps(place, str(strategy.pk), steps, caller=caller)
        set_safeguard(place, plan.pk, _make_safeguard(place), caller=caller)
        start_milestone(place, plan.pk, plan.milestones.all()[0].pk, caller=caller)


def _make_safeguard(place: FlagPath) -> dict:
    body = SafeguardBody(
        data={
            "title": "Failed payments",
            "impactMetric": {
                "metricName": _name_metric(place),
                "aggregationMode": "avg",
                "timeRange": "hour",
            },
            "triggerCondition": {"operator": ">", "threshold": 0.05},
        }
    )
    body.is_valid(raise_exception=True)
    values: dict = body.validated_data
    return values


def _name_metric(place: FlagPath) -> str:
    return f"{place.feature.replace('-', '_')}_failed_payments"


def _make_points(place: FlagPath, begin: datetime, now: datetime) -> Iterator[ImpactPoint]:
    """A gauge value every ten minutes. The paused plan's values rise in the last hours."""
    labels = orjson.dumps({"appName": "web-shop", "environment": "production"}).decode()
    minutes = int((now - begin).total_seconds() // 60)
    start = begin.replace(second=0, microsecond=0)
    for minute in range(10, minutes, 10):
        value = 0.02 + 0.006 * math.sin(minute / 97) + 0.003 * math.sin(minute / 13)
        late = minute - (minutes - 8 * 60)
        if place == PAUSED and late > 0:
            value += 0.045 * min(1, late / 300)
        moment = start + timedelta(minutes=minute)
        yield ImpactPoint(
            name=_name_metric(place), at=moment, labels=labels, kind="gauge", value=round(value, 5)
        )


def _make_template() -> dict:
    transition = {"intervalMinutes": 1440, "window": WEEKDAYS}
    return {
        "name": "Careful",
        "description": "A day at each step, on weekdays in the morning.",
        "milestones": [
            {
                "name": f"{share} %",
                "strategies": [{"name": "flexibleRollout", "parameters": {"rollout": f"{share}"}}],
                "transitionCondition": transition,
            }
            for share in (5, 25, 50, 100)
        ],
    }
