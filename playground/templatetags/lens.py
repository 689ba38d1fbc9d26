"""``{% tell_rows rows as told %}`` for lists of flags, ``{% tell_flag flag lanes as told %}`` for a flag: what the lens
gets, by the name of the flag, or by the environment. ``{% find_bucket strategy flag as bucket %}`` for Roll out."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template

from playground.engine.context import Context, find_sticky_text
from playground.engine.definitions import StrategyDefinition
from playground.engine.hashing import ROLLOUT_SEED, hash_key, hash_place
from playground.engine.strategy_types import STRATEGY_TYPES
from playground.lens import Noticed, Told, notice_changes, tell_flags
from projects.flags.lists.cells import FlagRow
from projects.history.noticed import NoticedChange
from projects.models import Flag

register = template.Library()


@register.simple_tag(takes_context=True)
def tell_rows(context: Mapping[str, Any], rows: Sequence[FlagRow]) -> Mapping[str, Told]:
    """For each flag in the first environment of its project, which is a production environment if there is one."""
    lens = context.get("lens")
    if not lens:
        return {}
    firsts = [(row.flag, next(filter(None, row.cells), None)) for row in rows if not row.flag.is_archived]
    places = [(flag.project_id, first[0].environment, flag.name) for flag, first in firsts if first]
    return {place[2]: told for place, told in tell_flags(lens, places, [row.flag for row in rows]).items()}


@register.simple_tag(takes_context=True)
def tell_flag(context: Mapping[str, Any], flag: Flag, environments: Sequence[Any]) -> Mapping[str, Told]:
    """``environments``: objects with a ``name``."""
    lens = context.get("lens")
    if not lens or flag.is_archived:
        return {}
    places = [(flag.project_id, environment.name, flag.name) for environment in environments]
    return {place[1]: told for place, told in tell_flags(lens, places, [flag]).items()}


@register.simple_tag(takes_context=True)
def tell_changes(
    context: Mapping[str, Any], changes: Sequence[NoticedChange], environment: str
) -> Mapping[int, Noticed]:
    """What the lens got before and after each change, by its newest event."""
    lens = context.get("lens")
    return notice_changes(lens, changes, environment) if lens else {}


@register.simple_tag(takes_context=True)
def find_bucket(context: Mapping[str, Any], strategy: StrategyDefinition, flag: str) -> int | None:
    """The bucket of the lens in a rollout, from 1 to 100; None without a lens or a value to hash.

    ``flag``: its name, or "" of a default strategy, whose group is that of each flag unless it has its own.
    """
    lens, kind = context.get("lens"), STRATEGY_TYPES.get(strategy["name"])
    if not lens or kind is None or not kind.percentage:
        return None
    parameters = strategy["parameters"]
    group = parameters.get("groupId", flag)
    if not group and not flag:
        return None
    stickiness = kind.stickiness or parameters.get("stickiness", "default")
    text = None if stickiness == "random" else find_sticky_text(Context(lens.context), stickiness)
    return None if text is None else hash_place(hash_key(group), 100, text.encode(), ROLLOUT_SEED)
