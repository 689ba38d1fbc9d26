"""Reads flags from the database as documents for the evaluation engine.

The number of SQL statements does not depend on the number of flags, or only on the number of batches.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection

from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definition_parts import BATCH, FlagParts, from_tables, read_flag_parts, read_segments

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
