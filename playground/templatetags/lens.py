"""``{% tell_rows rows as told %}`` for lists of flags, ``{% tell_flag flag lanes as told %}`` for a flag: what the lens
gets, by the name of the flag, or by the environment."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django import template

from playground.lens import Told, tell_flags
from projects.flags.lists.rows import FlagRow
from projects.models import Flag

register = template.Library()


@register.simple_tag(takes_context=True)
def tell_rows(context: Mapping[str, Any], rows: Sequence[FlagRow]) -> Mapping[str, Mapping[str, Told]]:
    told: dict[str, dict[str, Told]] = defaultdict(dict)
    lens = context.get("lens")
    if not lens:
        return told
    places = [
        (row.flag.project_id, place[0].environment, row.flag.name)
        for row in rows
        if not row.flag.is_archived
        for place in row.cells
        if place
    ]
    for (_, environment, name), each in tell_flags(lens, places, [row.flag for row in rows]).items():
        told[name][environment] = each
    return told


@register.simple_tag(takes_context=True)
def tell_flag(context: Mapping[str, Any], flag: Flag, environments: Sequence[Any]) -> Mapping[str, Told]:
    """``environments``: objects with a ``name``."""
    lens = context.get("lens")
    if not lens or flag.is_archived:
        return {}
    places = [(flag.project_id, environment.name, flag.name) for environment in environments]
    return {place[1]: told for place, told in tell_flags(lens, places, [flag]).items()}
