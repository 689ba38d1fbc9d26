"""Reads the parts of flags in an environment: their states, strategies with segments, and parents.

Each statement reads one table by ids, without joins: with no statistics, or those of a table that was empty,
PostgreSQL may join by comparing all rows with all, which takes minutes after a large import.

The same statements read a past moment, from the versions of each table (``from_tables``).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from playground.engine.definitions import (
    DependencyDefinition,
    SegmentDefinition,
    StrategyDefinition,
    VariantDefinition,
)
from projects.strategies.fields import SELECTED, from_row

BATCH = 2_000  # flags: the documents of a hundred thousand take several times the memory of the result

# A raw cursor returns jsonb as text, which orjson parses fastest. Strategies and parents keep their order.
_STATES = """
SELECT flag_id, enabled, variants FROM {flagenvironment} AS place
 WHERE flag_id = ANY(%(flags)s) AND environment_id = %(environment)s
"""
_STRATEGIES = f"""
SELECT s.flag_id, s.id::text, {SELECTED} FROM {{strategy}} s
 WHERE s.flag_id = ANY(%(flags)s) AND s.environment_id = %(environment)s
 ORDER BY s.flag_id, s.sort_order, s.id
"""  # noqa: S608 - columns of our own
_STRATEGY_SEGMENTS = """
SELECT strategy_id::text, segment_id FROM {strategysegment} AS link
 WHERE strategy_id = ANY(ARRAY(SELECT id FROM {strategy} AS s
                                WHERE flag_id = ANY(%(flags)s) AND environment_id = %(environment)s)) ORDER BY id
"""
_PARENTS = """
SELECT d.flag_id, (SELECT p.name FROM {flag} p WHERE p.id = d.parent_id), d.enabled, d.variants
  FROM {dependency} d WHERE d.flag_id = ANY(%(flags)s) ORDER BY d.flag_id, d.id
"""
_PARTS = ";".join((_STATES, _STRATEGIES, _STRATEGY_SEGMENTS, _PARENTS))
"""Sent at once: most changes read the parts of one flag, where waiting for four answers would dominate."""
_SEGMENTS = """
SELECT id, name, constraints FROM {segment} AS segment WHERE id = ANY(%(segments)s)
"""
_TABLES = ("flag", "flagenvironment", "strategy", "strategysegment", "dependency", "segment")
_PRESENT = {name: f"projects_{name}" for name in _TABLES}
_VALID = "valid_from <= %(at)s AND valid_to > %(at)s"
_PAST = {name: f"(SELECT * FROM projects_{name}version WHERE {_VALID})" for name in _TABLES}  # noqa: S608


def from_tables(statement: str, at: datetime | None) -> str:
    """The statement for the present tables, or for the versions that were valid ``%(at)s``."""
    return statement.format_map(_PRESENT if at is None else _PAST)


@dataclass(frozen=True, slots=True)
class FlagParts:
    """The parts of flags in an environment, by their ids. Omits flags without any.

    ``states`` are whether the flag is enabled, and its variants as JSON. ``strategies`` have their ids.
    """

    states: dict[int, tuple[bool, str]] = field(default_factory=dict)
    strategies: dict[int, list[StrategyDefinition]] = field(default_factory=lambda: defaultdict(list))
    parents: dict[int, list[DependencyDefinition]] = field(default_factory=lambda: defaultdict(list))
    segments: set[int] = field(default_factory=set)

    def read_state(self, flag_id: int) -> tuple[bool, list[VariantDefinition]]:
        """Whether the flag is enabled, and its variants."""
        enabled, variants = self.states.get(flag_id, (False, "[]"))
        return enabled, orjson.loads(variants)


def read_flag_parts(
    cursor: Any, flag_ids: Sequence[int], environment: str, at: datetime | None = None
) -> FlagParts:
    """Four statements, sent at once, per BATCH flags; none without flags. Reads the present, or a past moment."""
    parts = FlagParts()
    for start in range(0, len(flag_ids), BATCH):
        where = {"flags": list(flag_ids[start : start + BATCH]), "environment": environment, "at": at}
        cursor.execute(from_tables(_PARTS, at), where)
        _read_states(cursor, parts)
        cursor.nextset()
        _read_strategies(cursor, parts)
        cursor.nextset()
        _read_parents(cursor, parts)
    return parts


def _read_states(cursor: Any, parts: FlagParts) -> None:
    for flag_id, enabled, variants in cursor.fetchall():
        parts.states[flag_id] = enabled, variants


def _read_strategies(cursor: Any, parts: FlagParts) -> None:
    """Reads the next two answers."""
    segments: dict[str, list[int]] = {}
    for flag_id, strategy_id, *values in cursor.fetchall():
        its_segments = segments[strategy_id] = []
        parts.strategies[flag_id].append(from_row(values, id=strategy_id, segments=its_segments))
    cursor.nextset()
    for strategy_id, segment_id in cursor.fetchall():
        if strategy_id in segments:  # otherwise its strategy was added since
            segments[strategy_id].append(segment_id)
            parts.segments.add(segment_id)


def _read_parents(cursor: Any, parts: FlagParts) -> None:
    for flag_id, parent, enabled, variants in cursor.fetchall():
        parts.parents[flag_id].append(
            {"feature": parent, "enabled": enabled, "variants": orjson.loads(variants)}
        )


def read_segments(
    cursor: Any, ids: Iterable[int], at: datetime | None = None
) -> dict[int, SegmentDefinition]:
    """Segments by id, now or at a past moment. One statement; none without ids."""
    segment_ids = sorted(ids)
    if not segment_ids:
        return {}
    cursor.execute(from_tables(_SEGMENTS, at), {"segments": segment_ids, "at": at})
    return {
        segment_id: {"id": segment_id, "name": name, "constraints": orjson.loads(constraints)}
        for segment_id, name, constraints in cursor.fetchall()
    }
