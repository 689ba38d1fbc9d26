"""``{% load timeline %}{% time_line flag cells plans marks as line %}`` for the page of a flag."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.template import Library
from django.utils import timezone

from projects.flags.lists.cells import Cell
from projects.models import Flag
from releases.plans.view import PlanView
from releases.requests.queries import Mark
from releases.timeline.view import TimeLine, make_time_line

register = Library()


@register.simple_tag(takes_context=True)
def time_line(
    context: Mapping[str, Any],
    flag: Flag,
    places: Sequence[Any],
    plans: Mapping[str, PlanView],
    marks: Sequence[Mark],
) -> TimeLine:
    cells: list[Cell] = [place.cell for place in places]
    query = context["request"].GET
    return make_time_line(flag, cells, plans, marks, query, now=timezone.now(), caller=context["caller"])
