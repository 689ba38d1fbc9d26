"""Compares the configuration of flags in two environments. The playground compares results.

Segments, context fields, dependencies, tags and links are shared by all environments and cannot differ.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any

import orjson

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.db.statements import fetch_rows
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from playground.engine.strategy_types import STRATEGY_TYPES
from projects.definitions import BATCH
from projects.strategies.fields import COLUMNS, SELECTED, from_row

SWITCH, STRATEGY, ROLLOUT, CONDITION, VARIANTS = "switch", "strategy", "rollout", "condition", "variants"
KINDS = {
    SWITCH: "On or off",
    STRATEGY: "Strategy",
    ROLLOUT: "Rollout",
    CONDITION: "Condition",
    VARIANTS: "Variants",
}
"""The kinds of differences, in the order of the page."""

_STATES = """
SELECT flag_id, environment_id, enabled, variants FROM projects_flagenvironment
 WHERE flag_id = ANY(%(flags)s) AND environment_id = ANY(%(environments)s)
"""
_STRATEGIES = f"""
SELECT s.flag_id, s.environment_id, s.id, {SELECTED} FROM projects_strategy s
 WHERE s.flag_id = ANY(%(flags)s) AND s.environment_id = ANY(%(environments)s)
 ORDER BY s.flag_id, s.sort_order, s.id
"""  # noqa: S608 - columns of our own
_SEGMENTS = """
SELECT strategy_id, segment_id FROM projects_strategysegment WHERE strategy_id = ANY(%(strategies)s) ORDER BY id
"""
_CHANGED = """
SELECT named.feature, place.environment, (
       SELECT e.created_at FROM audit_auditevent e
        WHERE e.feature = named.feature
          AND (e.environment = place.environment AND e.type = ANY(%(types)s)
               OR e.type = 'feature-reverted'
                  AND jsonb_path_query_array(e.before, '$.environments[*] ? (@.name == $name)', place.name)
                      <> jsonb_path_query_array(e.after, '$.environments[*] ? (@.name == $name)', place.name))
        ORDER BY e.id DESC LIMIT 1)
  FROM unnest(%(flags)s::text[]) AS named(feature)
 CROSS JOIN (SELECT name AS environment, jsonb_build_object('name', name) AS name
               FROM unnest(%(environments)s::text[]) AS name) AS place
"""
_CHANGES = [
    kind.value
    for kind in (
        E.FEATURE_ENVIRONMENT_ENABLED,
        E.FEATURE_ENVIRONMENT_DISABLED,
        E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED,
        E.FEATURE_STRATEGY_ADD,
        E.FEATURE_STRATEGY_UPDATE,
        E.FEATURE_STRATEGY_REMOVE,
        E.FEATURE_STRATEGY_ORDER_CHANGED,
        E.FEATURE_IMPORTED,
        E.IMPORT_UNDONE,
        E.FEATURE_PROMOTED,
        E.PROMOTION_UNDONE,
    )
]
_SORT_ORDER = COLUMNS.index("sort_order")


@dataclass(slots=True)
class Configuration:
    """A flag in an environment, with its strategies as rows, which become documents on access."""

    enabled: bool = False
    variants_json: str = "[]"
    rows: list[tuple[Sequence[Any], list[int]]] = field(default_factory=list)

    @property
    def variants(self) -> list[VariantDefinition]:
        variants: list[VariantDefinition] = orjson.loads(self.variants_json)
        return variants

    @property
    def strategies(self) -> list[StrategyDefinition]:
        """The strategies without sort orders, because only their position in the list matters."""
        return [
            from_row(values, id="", segments=segments) | {"sortOrder": 0} for values, segments in self.rows
        ]


Pair = tuple[Configuration, Configuration]


def read_configurations(flag_ids: Sequence[int], environments: tuple[str, str]) -> dict[int, Pair]:
    """The settings of these flags in both environments, by id. Three statements per BATCH flags."""
    read: dict[int, Pair] = {flag_id: (Configuration(), Configuration()) for flag_id in flag_ids}
    for start in range(0, len(flag_ids), BATCH):
        where: dict[str, Any] = {
            "flags": list(flag_ids[start : start + BATCH]),
            "environments": list(environments),
        }
        for flag_id, environment, enabled, variants in fetch_rows(_STATES, where):
            configuration = read[flag_id][environment != environments[0]]
            configuration.enabled, configuration.variants_json = enabled, variants
        _read_strategies(where, environments[0], read)
    return read


def _read_strategies(where: dict[str, Any], first: str, read: Mapping[int, Pair]) -> None:
    segments: dict[Any, list[int]] = {}
    for flag_id, environment, strategy_id, *values in fetch_rows(_STRATEGIES, where):
        values[_SORT_ORDER] = 0
        its_segments = segments[strategy_id] = []
        read[flag_id][environment != first].rows.append((values, its_segments))
    if segments:
        for strategy_id, segment_id in fetch_rows(_SEGMENTS, {"strategies": list(segments)}):
            segments[strategy_id].append(segment_id)


def find_differences(pair: Pair) -> tuple[str, ...]:
    """The kinds of differences, in the order of KINDS. Does not parse equal values."""
    source, target = pair
    kinds = set()
    if source.enabled != target.enabled:
        kinds.add(SWITCH)
    if source.variants_json != target.variants_json and source.variants != target.variants:
        kinds.add(VARIANTS)
    if source.rows != target.rows:
        kinds.update(_list_differing_strategies(source.strategies, target.strategies))
    return tuple(kind for kind in KINDS if kind in kinds)


def _list_differing_strategies(
    source: Iterable[StrategyDefinition], target: Iterable[StrategyDefinition]
) -> Iterator[str]:
    """Compares strategies by position."""
    for left, right in zip_longest(source, target):
        if left is None or right is None:
            yield STRATEGY
            continue
        if any(left[key] != right[key] for key in ("title", "disabled")):
            yield STRATEGY
        if (left["name"], left["parameters"]) != (right["name"], right["parameters"]):
            yield ROLLOUT if _is_rollout(left) and _is_rollout(right) else STRATEGY
        if _conditions_of(left) != _conditions_of(right):
            yield CONDITION
        if left["variants"] != right["variants"]:
            yield VARIANTS


def _conditions_of(strategy: StrategyDefinition) -> tuple[set[bytes], set[int]]:
    """All conditions must hold, so neither their order nor the order of their values matters."""
    constraints = (
        {"inverted": False, "caseInsensitive": False} | each | {"values": sorted(set(each["values"]))}
        for each in strategy["constraints"]
    )
    tidied = {orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in constraints}
    return tidied, set(strategy["segments"])


def _is_rollout(strategy: StrategyDefinition) -> bool:
    """Whether it is on for a percentage; the type ``default`` is on for 100 %."""
    kind = STRATEGY_TYPES.get(strategy["name"])
    return kind is not None and not kind.lists


def read_last_changes(
    flags: Collection[str], environments: tuple[str, str]
) -> dict[str, dict[str, datetime]]:
    """Reads when each flag was last changed in these environments, by name and environment. One query."""
    changed: dict[str, dict[str, datetime]] = defaultdict(dict)
    where = {"flags": list(flags), "environments": list(environments), "types": _CHANGES}
    for feature, environment, moment in fetch_rows(_CHANGED, where):
        if moment is not None:
            changed[feature][environment] = moment
    return changed
