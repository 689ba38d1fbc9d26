"""``{% load plans %}{% release_plans flag as plans %}{{ plans|of_place:place.name }}`` for the page of a flag."""

from collections.abc import Mapping
from typing import Any

from django import template

from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.view import PlanView

register = template.Library()


@register.simple_tag(takes_context=True)
def release_plans(context: Mapping[str, Any], flag: Flag) -> dict[str, PlanView]:
    """The latest plan of each environment, by its name."""
    plans = ReleasePlan.objects.filter(flag=flag).select_related("flag", "active")
    plans = plans.prefetch_related("milestones", "safeguards").order_by("created_at", "pk")
    return {plan.environment_id: PlanView(plan, context["caller"]) for plan in plans}


@register.filter
def of_place(plans: Mapping[str, PlanView], environment: str) -> PlanView | None:
    return plans.get(environment)


@register.filter
def is_of_plan(strategy_id: Any, view: PlanView | None) -> bool:
    """Whether a strategy of the flag is the plan's, which writes it at each step."""
    return view is not None and view.plan.state != "done" and str(strategy_id) in view.plan.strategy_ids
