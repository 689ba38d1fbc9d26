"""``{% load timeline %}{% time_line flag places plans marks as line %}`` for a flag, and the cards below it:
``places|next_plan:plans`` and ``{% answer_now flag places %}``.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from django.template import Library
from django.utils import timezone

from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import explain
from playground.lens import make_why_url
from playground.pages.flag_detail import FlagDetails
from playground.saved_contexts.expectations import compile_flags, read_stored_flags
from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.view import PlanView
from releases.requests.queries import Mark
from releases.timeline.view import TimeLine, make_time_line
from releases.why.path import MAX_CONDITIONS, make_answer

register = Library()


@register.simple_tag(takes_context=True)
def time_line(
    context: Mapping[str, Any],
    flag: Flag,
    places: Sequence[Any],
    plans: Mapping[str, PlanView],
    marks: Sequence[Mark],
) -> TimeLine:
    query, caller = context["request"].GET, context["caller"]
    return make_time_line(flag, places, plans, marks, query, now=timezone.now(), caller=caller)


@register.filter
def next_plan(places: Sequence[Any], plans: Mapping[str, PlanView]) -> PlanView | None:
    """The unfinished plan of the first environment that has one and is unfolded."""
    views = (plans.get(place.name) for place in places if place.is_open)
    return next((view for view in views if view and view.plan.state != ReleasePlan.State.DONE), None)


@register.inclusion_tag("why/brief.html", takes_context=True)
def answer_now(context: Mapping[str, Any], flag: Flag, places: Sequence[Any]) -> dict[str, Any]:
    """The path to what the lens gets in the first environment, with its page; nothing without a lens."""
    lens = context.get("lens")
    if not lens or flag.is_archived or not places:
        return {}
    environment, now = places[0].name, timezone.now()
    compiled = compile_flags(read_stored_flags([flag.project_id], environment, {flag.name}), environment)
    evaluation = evaluate(compiled, Context(lens.context), now=now, random=random.random)
    detail = FlagDetails(evaluation, {}, context["caller"], MAX_CONDITIONS).flag(flag.name)
    fault = evaluation.pair(flag.name)[0].fault
    answer = make_answer(explain(evaluation, flag.name), detail, fault, {}, lambda index, rollout: 0)
    url = make_why_url(lens, (flag.project_id, environment, flag.name))
    return {"answer": answer, "detail": detail, "lens": lens, "url": url}
