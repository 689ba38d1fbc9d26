"""Reads flags from the database as documents for the evaluation engine.

The number of SQL statements does not depend on the number of flags, or only on the number of batches.

Reads the parts of flags in an environment: their states, strategies with segments, and parents.

Each statement reads one table by ids, without joins: with no statistics, or those of a table that was empty,
PostgreSQL may join by comparing all rows with all, which takes minutes after a large import.

The same statements read a past moment, from the versions of each table (``from_tables``).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import orjson
from django.db import connection

from flagadmin.core.change_checks import KnownChange
from playground.engine.definitions import (
    DependencyDefinition,
    FlagDefinition,
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


K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Definitions:
    """``flags`` by name in code-point order, and the ``segments`` that they use, by id."""

    flags: list[FlagDefinition]
    segments: dict[int, SegmentDefinition]

    @classmethod
    def of(cls, flags: Iterable[FlagDefinition], known: Mapping[int, SegmentDefinition]) -> "Definitions":
        """These flags, with those of their segments that are known."""
        listed = list(flags)
        return cls(listed, {key: known[key] for key in sorted(find_used_segments(listed) & known.keys())})

    def after(self, known: KnownChange, environment: str) -> "Definitions":
        """The flags in the environment after the change. Lacks segments and parents that are not among these."""
        members: dict[str, Any] = {flag["name"]: flag for flag in self.flags}
        for (name, place), changed in known.flags.items():
            if changed is not None and place in ("", environment):
                members[name] = {**members.get(name, {}), **changed}
        gone = known.archived.union(known.deleted)
        # Changed parts of an archived flag do not make it a flag of these.
        flags: Any = [flag for name, flag in sorted(members.items()) if name not in gone and "name" in flag]
        segments: Any = {key: {**each, **known.segments.get(key, {})} for key, each in self.segments.items()}
        return Definitions(flags, segments)

    def by_name(self) -> dict[str, FlagDefinition]:
        return {flag["name"]: flag for flag in self.flags}

    def select(self, names: Collection[str]) -> "Definitions":
        """Those of these flags that exist here, with all segments."""
        return Definitions([flag for flag in self.flags if flag["name"] in names], self.segments)


def find_used_segments(flags: Iterable[FlagDefinition]) -> set[int]:
    return {segment for flag in flags for strategy in flag["strategies"] for segment in strategy["segments"]}


def find_parents(flags: Iterable[FlagDefinition]) -> set[str]:
    return {parent["feature"] for flag in flags for parent in flag["dependencies"]}


def find_unequal(before: Mapping[K, Any], after: Mapping[K, Any]) -> set[K]:
    """The keys whose values differ, or that only one side has."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def find_unlike_flags(before: Definitions, after: Definitions) -> set[str]:
    """The flags that differ, or have a differing parent or segment."""
    unlike = find_unequal(before.by_name(), after.by_name())
    if segments := find_unequal(before.segments, after.segments):
        unlike |= {flag["name"] for flag in after.flags if segments & find_used_segments([flag])}
    return unlike | {flag["name"] for flag in after.flags if unlike & find_parents([flag])}


_FLAGS = """
SELECT id, name, project_id, impression_data, stale, archived_at IS NOT NULL FROM {{flag}} AS flag
 WHERE {where} ORDER BY name COLLATE "C"
"""
_IDS = """
SELECT id FROM projects_flag WHERE {where} ORDER BY name COLLATE "C"
"""
_ACTIVE = "archived_at IS NULL"
_IN_PROJECTS = "project_id = ANY(%(projects)s)"
_NAMED = "name = ANY(%(names)s)"
_NUMBERED = "id = ANY(%(ids)s)"
_PROJECT = 2  # of the columns of _FLAGS


def read_definitions(
    projects: Iterable[str],
    environment: str,
    *,
    flags: Iterable[str] | None = None,
    segments: Iterable[int] = (),
    at: datetime | None = None,
) -> Definitions:
    """The active flags of the projects, as configured in the environment. At most six SQL statements per BATCH flags.

    Only the given `flags`, if any; also reads unused `segments`. ``at``: reads the versions of that moment. If
    versions may not reach back that far, use ``projects.history.definitions_at``.
    """
    project_ids = list(projects)
    with connection.cursor() as cursor:
        if flags is None:
            rows = _read_flags(cursor, f"{_IN_PROJECTS} AND {_ACTIVE}", at=at, projects=project_ids)
        else:
            # Not filtered by project too: the names' own index finds a few names fastest.
            named = _read_flags(cursor, f"{_NAMED} AND {_ACTIVE}", at=at, names=list(flags))
            rows = [row for row in named if row[_PROJECT] in project_ids]
        return _read_definitions(cursor, rows, environment, segments, at=at)


def read_definition_batches(
    projects: Iterable[str], environment: str, flags: Collection[str] | None = None
) -> Iterator[Definitions]:
    """Like ``read_definitions``, at most BATCH flags at once; each segment with the first flags that use it.

    Read them in one transaction.
    """
    known: set[int] = set()
    with connection.cursor() as cursor:
        for ids in read_id_batches(cursor, projects, flags):
            read = _read_definitions(
                cursor, _read_flags(cursor, _NUMBERED, ids=ids), environment, known=known
            )
            known.update(read.segments)
            yield read


def read_id_batches(
    cursor: Any, projects: Iterable[str], flags: Collection[str] | None = None
) -> Iterator[list[int]]:
    """The ids of the projects' active flags in the order of their names, at most BATCH at once.

    Only the given ``flags``, if any.
    """
    where, names = f"{_IN_PROJECTS} AND {_ACTIVE}", None if flags is None else list(flags)
    if names is not None:
        where += f" AND {_NAMED}"
    cursor.execute(_IDS.format(where=where), {"projects": list(projects), "names": names})
    ids = [flag_id for (flag_id,) in cursor.fetchall()]
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def read_all_definitions(
    environment: str, flags: Iterable[str] | None = None, at: datetime | None = None
) -> Definitions:
    """Like ``read_definitions``, for every project. Includes archived flags; ``archived`` marks them."""
    with connection.cursor() as cursor:
        if flags is None:
            rows = _read_flags(cursor, "true", at)
        else:
            rows = _read_flags(cursor, _NAMED, at, names=list(flags))
        read = _read_definitions(cursor, rows, environment, at=at)
    for flag, row in zip(read.flags, rows, strict=True):
        flag["archived"] = row[-1]
    return read


def _read_flags(
    cursor: Any, where: str, at: datetime | None = None, **parameters: list[Any]
) -> list[tuple[Any, ...]]:
    cursor.execute(from_tables(_FLAGS.format(where=where), at), {**parameters, "at": at})
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _read_definitions(
    cursor: Any,
    rows: list[tuple[Any, ...]],
    environment: str,
    segments: Iterable[int] = (),
    known: Collection[int] = (),
    at: datetime | None = None,
) -> Definitions:
    """The definitions of these rows of flags. Reads ``segments`` even if unused, but never ``known`` ones."""
    parts = read_flag_parts(cursor, [row[0] for row in rows], environment, at)
    flags = [_make_definition(row, parts) for row in rows]
    return Definitions(flags, read_segments(cursor, parts.segments.union(segments).difference(known), at))


def _make_definition(row: tuple[Any, ...], parts: FlagParts) -> FlagDefinition:
    flag_id, name, project, impression_data, stale, _ = row
    enabled, variants = parts.read_state(flag_id)
    return {
        "name": name,
        "project": project,
        "enabled": enabled,
        "impression_data": impression_data,
        "stale": stale,
        "variants": variants,
        "strategies": parts.strategies.get(flag_id, []),
        "dependencies": parts.parents.get(flag_id, []),
    }
