"""Reads flags from the database as the documents that the evaluation engine takes.

The number of SQL statements does not depend on the number of flags, or on their batches only.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connection

from playground.engine.definitions import FlagDefinition, SegmentDefinition
from projects.definition_parts import BATCH, FlagParts, read_flag_parts, read_segments

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Definitions:
    """``flags`` by name in code-point order, and the ``segments`` that they use, by id."""

    flags: list[FlagDefinition]
    segments: dict[int, SegmentDefinition]

    @classmethod
    def of(cls, flags: Iterable[FlagDefinition], known: Mapping[int, SegmentDefinition]) -> "Definitions":
        """These flags, with the segments they use that are known."""
        listed = list(flags)
        return cls(listed, {key: known[key] for key in sorted(find_used_segments(listed) & known.keys())})

    def by_name(self) -> dict[str, FlagDefinition]:
        return {flag["name"]: flag for flag in self.flags}

    def select(self, names: Collection[str]) -> "Definitions":
        """Those of these flags that are here, with all segments."""
        return Definitions([flag for flag in self.flags if flag["name"] in names], self.segments)


def find_used_segments(flags: Iterable[FlagDefinition]) -> set[int]:
    return {segment for flag in flags for strategy in flag["strategies"] for segment in strategy["segments"]}


def find_parents(flags: Iterable[FlagDefinition]) -> set[str]:
    return {parent["feature"] for flag in flags for parent in flag["dependencies"]}


def find_unequal(before: Mapping[K, Any], after: Mapping[K, Any]) -> set[K]:
    """The keys whose values are not the same in both, or that only one has."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def find_unlike_flags(before: Definitions, after: Definitions) -> set[str]:
    """The flags that are not the same in both, or have a parent or a segment that is not."""
    unlike = find_unequal(before.by_name(), after.by_name())
    if segments := find_unequal(before.segments, after.segments):
        unlike |= {flag["name"] for flag in after.flags if segments & find_used_segments([flag])}
    return unlike | {flag["name"] for flag in after.flags if unlike & find_parents([flag])}


_FLAGS = """
SELECT id, name, project_id, impression_data, stale, archived_at IS NOT NULL FROM projects_flag
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
) -> Definitions:
    """The active flags of the projects, as configured in the environment. For BATCH flags at most six SQL statements.

    Only those named `flags`, if given; with `segments` that they need not use.
    """
    project_ids = list(projects)
    with connection.cursor() as cursor:
        if flags is None:
            rows = _read_flags(cursor, f"{_IN_PROJECTS} AND {_ACTIVE}", projects=project_ids)
        else:
            # Not by the project too: a few names are found fastest by their own index.
            named = _read_flags(cursor, f"{_NAMED} AND {_ACTIVE}", names=list(flags))
            rows = [row for row in named if row[_PROJECT] in project_ids]
        return _read_definitions(cursor, rows, environment, segments)


def read_definition_batches(projects: Iterable[str], environment: str) -> Iterator[Definitions]:
    """Like ``read_definitions``, at most BATCH flags at once; each segment with the first flags that use it.

    Read them in one transaction.
    """
    known: set[int] = set()
    with connection.cursor() as cursor:
        for ids in read_id_batches(cursor, projects):
            read = _read_definitions(
                cursor, _read_flags(cursor, _NUMBERED, ids=ids), environment, known=known
            )
            known.update(read.segments)
            yield read


def read_id_batches(cursor: Any, projects: Iterable[str]) -> Iterator[list[int]]:
    """The ids of the projects' active flags in the order of their names, at most BATCH at once."""
    cursor.execute(_IDS.format(where=f"{_IN_PROJECTS} AND {_ACTIVE}"), {"projects": list(projects)})
    ids = [flag_id for (flag_id,) in cursor.fetchall()]
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def read_all_definitions(environment: str, flags: Iterable[str] | None = None) -> Definitions:
    """Like ``read_definitions``, of every project. Archived flags are among them; ``archived`` says which."""
    with connection.cursor() as cursor:
        if flags is None:
            rows = _read_flags(cursor, "true")
        else:
            rows = _read_flags(cursor, _NAMED, names=list(flags))
        read = _read_definitions(cursor, rows, environment)
    for flag, row in zip(read.flags, rows, strict=True):
        flag["archived"] = row[-1]
    return read


def _read_flags(cursor: Any, where: str, **parameters: list[Any]) -> list[tuple[Any, ...]]:
    cursor.execute(_FLAGS.format(where=where), parameters)
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _read_definitions(
    cursor: Any,
    rows: list[tuple[Any, ...]],
    environment: str,
    segments: Iterable[int] = (),
    known: Collection[int] = (),
) -> Definitions:
    """The definitions of these rows of flags. ``segments`` are read even if no flag uses them, ``known`` ones never."""
    parts = read_flag_parts(cursor, [row[0] for row in rows], environment)
    flags = [_make_definition(row, parts) for row in rows]
    return Definitions(flags, read_segments(cursor, parts.segments.union(segments).difference(known)))


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
