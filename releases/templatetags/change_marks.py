"""``{% load change_marks %}``: the changes that change requests propose for the flags and segments of a page.

``{% marks_of flag.name as marks %}``: for a flag, in all environments or in a named one.
``{% marks_of_flags names as marks %}``: the first ones for several flags, in all environments or in a named one.
``{% marks_of_segment segment.pk as marks %}``: for a segment.
``{% marks_of_rows rows as marks %}``: for a list, the first one by flag and environment.
``{% marks_of_segments rows as marks %}``: for a list of segments, the first one by its id.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django import template

from groups.access import Caller
from releases.requests.queries import Mark, find_marks, find_segment_marks

register = template.Library()
MAX_SHOWN = 10


@register.simple_tag(takes_context=True)
def marks_of(context: Mapping[str, Any], flag: str, environment: str = "") -> list[Mark]:
    caller = context.get("caller")
    return list(find_marks(caller, [flag], environment)) if isinstance(caller, Caller) and flag else []


@register.simple_tag(takes_context=True)
def marks_of_flags(context: Mapping[str, Any], flags: Collection[str], environment: str = "") -> list[Mark]:
    return list(find_marks(context["caller"], flags, environment))[:MAX_SHOWN]


@register.simple_tag(takes_context=True)
def marks_of_segment(context: Mapping[str, Any], segment: int | None) -> list[Mark]:
    return list(find_segment_marks(context["caller"], [segment])) if segment else []


@register.simple_tag(takes_context=True)
def marks_of_segments(context: Mapping[str, Any], rows: Iterable[Any]) -> dict[int, Mark]:
    marks: dict[int, Mark] = {}
    for mark in find_segment_marks(context["caller"], [row.id for row in rows]):
        marks.setdefault(mark.segment, mark)
    return marks


@register.simple_tag(takes_context=True)
def marks_of_rows(context: Mapping[str, Any], rows: Iterable[Any]) -> dict[str, dict[str, Mark]]:
    marks: dict[str, dict[str, Mark]] = {}
    for mark in find_marks(context["caller"], [row.flag.name for row in rows]):
        marks.setdefault(mark.flag, {}).setdefault(mark.environment, mark)
    return marks
