"""``{% load plans %}{% release_plans flag as plans %}{{ plans|of_place:place.name }}`` for the page of a flag."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from django import template

from flagadmin.core.errors import choices
from flagadmin.core.lists.filters import read_zone
from projects.drafts import FlagEdit, NewFlagEdit
from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.forms import INTERVALS, ROLLOUTS, WINDOWS, find_share, list_steps
from releases.plans.picture import Picture, plan_picture
from releases.plans.progress import say_minutes, say_window
from releases.plans.queries import UNFINISHED, TouchedPlan, find_touched_plans, name_steps
from releases.plans.view import PlanView
from releases.requests.approvals import Verdict, foresee
from releases.safeguards.numbers import list_metrics
from releases.safeguards.queries import unapproved_safeguards
from releases.safeguards.rules import AGGREGATIONS, TIME_RANGES, describe_labels, describe_safeguard
from releases.templates.actions import is_zone

register = template.Library()


class StepsOffer(NamedTuple):
    """``rollouts``: such as ``15, 25, 50``; "" if the form has no percentage to reach. ``offered``: those offered."""

    rollouts: str
    offered: str
    picture: Picture | None
    is_chosen: bool

    @property
    def words(self) -> str:
        """``15 → 25 → 50``"""
        return self.rollouts.replace(",", " → ")


register.filter("steps_of", lambda milestones: name_steps([each.name for each in milestones]))
register.filter(describe_safeguard)
register.filter(describe_labels)


@register.simple_tag(takes_context=True)
def release_plans(context: Mapping[str, Any], flag: Flag) -> dict[str, PlanView]:
    """The latest plan of each environment, by its name."""
    plans = ReleasePlan.objects.filter(flag=flag).select_related("flag", "active")
    plans = plans.prefetch_related("milestones", "safeguards").order_by("created_at", "pk")
    return {plan.environment_id: PlanView(plan, context["caller"]) for plan in plans}


@register.simple_tag
def flags_guarded_before(project_id: str, environment: str) -> str:
    """Names of flags whose safeguards there were set before changes needed a change request; "" without any."""
    safeguards = unapproved_safeguards(project_id).filter(environment=environment)
    names = sorted({safeguard.flag.name for safeguard in safeguards if safeguard.flag})
    return choices(names, limit=5) if names else ""


@register.filter
def of_place(plans: Mapping[str, PlanView], environment: str) -> PlanView | None:
    return plans.get(environment)


@register.filter
def is_of_plan(strategy_id: Any, view: PlanView | None) -> bool:
    """Whether a strategy of the flag is the plan's, which writes it at each step."""
    return view is not None and view.plan.state != "done" and str(strategy_id) in view.plan.strategy_ids


@register.simple_tag(takes_context=True)
def plan_that_writes(context: Mapping[str, Any], strategy_id: str) -> PlanView | None:
    """The unfinished plan of the page's flag that has this strategy."""
    if not strategy_id or not context.get("flag"):
        return None
    plans = ReleasePlan.objects.filter(flag=context["flag"], strategy_ids__contains=[str(strategy_id)])
    plan = plans.filter(state__in=UNFINISHED).select_related("flag", "active").first()
    return PlanView(plan, context["caller"]) if plan else None


@register.simple_tag(takes_context=True)
def offer_steps(context: Mapping[str, Any]) -> StepsOffer:
    """The steps in the form of a strategy: those entered, or from the present percentage to the form's."""
    view, form = context["view"], context["request"].POST
    present = 0 if context["is_new"] else find_share(view.stored)
    target = find_share(view.document)
    if not 0 < target <= 100:
        return StepsOffer("", "", None, is_chosen=False)
    offered = ", ".join(map(str, list_steps(present, target)))
    entered = form.get("rollouts", "").strip()
    rollouts = entered if entered and entered != form.get("rollouts-offered", "") else offered
    zone = read_zone(context["request"])
    picture = plan_picture(rollouts, form, zone=zone)
    return StepsOffer(rollouts, offered, picture, is_chosen=form.get("when") == "steps")


@register.simple_tag
def plans_touched(flags: Collection[str] | str, environment: str, what: str) -> list[TouchedPlan]:
    """``{% plans_touched names environment "off" as touched %}`` also for one flag."""
    names = [flags] if isinstance(flags, str) else list(flags)
    return list(find_touched_plans(names, environment, what))


@register.filter
def transition_words(transition: Mapping[str, Any] | None) -> tuple[str, str]:
    """Describes how long the next milestone waits, and the time of the week."""
    if transition is None:
        return "by hand", "any time"
    minutes, window = transition.get("intervalMinutes"), transition.get("window")
    return f"after {say_minutes(minutes)}" if minutes else "at once", say_window(
        window
    ) if window else "any time"


@register.simple_tag(takes_context=True)
def browser_zone(context: Mapping[str, Any]) -> str:
    """The browser's time zone if windows support it, else UTC."""
    zone = str(read_zone(context["request"]))
    return zone if is_zone(zone) else "UTC"


@register.simple_tag
def steps_choices() -> dict[str, Any]:
    return {"rollouts": ROLLOUTS, "intervals": INTERVALS, "windows": WINDOWS, "metrics": list_metrics()}


@register.simple_tag
def safeguard_words() -> dict[str, Any]:
    """The choices of a safeguard's sentence, each a value and its words."""
    return {
        "aggregations": list(AGGREGATIONS.items()),
        "ranges": [(name, f"1 {name}") for name in TIME_RANGES],
        "metrics": list_metrics(),
    }


@register.simple_tag(takes_context=True)
def approvals_foreseen(
    context: Mapping[str, Any], edits: Sequence[FlagEdit | NewFlagEdit]
) -> tuple[Verdict, str] | None:
    """The rule that a request for these edits would follow, and who may approve it; None if it needs no request."""
    return foresee(edits, context["caller"]) if edits else None
