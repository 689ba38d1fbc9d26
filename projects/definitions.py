"""Reads flags from the database as the documents that the evaluation engine takes.

The number of SQL statements does not depend on the number of flags, or on their batches only.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection

from projects.strategies.fields import SELECTED, from_row

Document = dict[str, Any]

BATCH = (
    2_000  # flags: the documents of a hundred thousand take several times the memory of what is made of them
)


@dataclass(frozen=True, slots=True)
class Definitions:
    """``flags`` by name in code-point order, and the ``segments`` that they use, by id."""

    flags: list[Document]
    segments: dict[int, Document]


# A raw cursor returns jsonb as text, which orjson parses fastest. Strategies and parents keep their order.
_FLAGS = """
SELECT f.id, f.name, f.project_id, f.impression_data, f.stale, coalesce(e.enabled, false), coalesce(e.variants, '[]'),
       f.archived_at IS NOT NULL
  FROM projects_flag f
  LEFT JOIN projects_flagenvironment e ON e.flag_id = f.id AND e.environment_id = %(environment)s
 WHERE {where}
 ORDER BY f.name COLLATE "C"
"""
_STRATEGIES = f"""
SELECT s.flag_id, s.id::text,
       ARRAY(SELECT l.segment_id FROM projects_strategysegment l WHERE l.strategy_id = s.id ORDER BY l.id), {SELECTED}
  FROM projects_strategy s JOIN projects_flag f ON f.id = s.flag_id
 WHERE {{where}} AND s.environment_id = %(environment)s
 ORDER BY s.flag_id, s.sort_order, s.id
"""  # noqa: S608 - columns of our own
_PARENTS = """
SELECT d.flag_id, p.name, d.enabled, d.variants
  FROM projects_dependency d JOIN projects_flag f ON f.id = d.flag_id JOIN projects_flag p ON p.id = d.parent_id
 WHERE {where}
 ORDER BY d.flag_id, d.id
"""
_IDS = """
SELECT f.id FROM projects_flag f WHERE {where} ORDER BY f.name COLLATE "C"
"""
_SEGMENTS = """
SELECT id, name, constraints FROM projects_segment WHERE id = ANY(%(segments)s)
"""

_IN_PROJECTS, _ACTIVE, _NAMED, _NUMBERED = (
    "f.project_id = ANY(%(projects)s)",
    "f.archived_at IS NULL",
    "f.name = ANY(%(flags)s)",
    "f.id = ANY(%(ids)s)",
)


def definitions(
    projects: Iterable[str],
    environment: str,
    *,
    flags: Iterable[str] | None = None,
    segments: Iterable[int] = (),
) -> Definitions:
    """The active flags of the projects, as configured in the environment. Four SQL statements.

    Only those named `flags`, if given; with `segments` that they need not use.
    """
    where: dict[str, Any] = {"projects": list(projects), "environment": environment}
    if flags is not None:
        where["flags"] = list(flags)
    return _read(where, segments)


def definition_batches(projects: Iterable[str], environment: str) -> Iterator[Definitions]:
    """Like ``definitions``, at most BATCH flags at once; each segment with the first flags that use it.

    Read them in one transaction.
    """
    where: dict[str, Any] = {"projects": list(projects), "environment": environment}
    known: set[int] = set()
    with connection.cursor() as cursor:
        for ids in batches_of_ids(cursor, where):
            read = _read({"ids": ids, "environment": environment}, known=known)
            known.update(read.segments)
            yield read


def batches_of_ids(cursor: Any, where: dict[str, Any]) -> Iterator[list[int]]:
    """The ids of flags in the order of their names, at most BATCH at once."""
    cursor.execute(_narrowed(_IDS, where), where)
    ids = [flag_id for (flag_id,) in cursor.fetchall()]
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def all_definitions(environment: str, flags: Iterable[str] | None = None) -> Definitions:
    """Like ``definitions``, of every project. Archived flags are among them; ``archived`` says which."""
    where: dict[str, Any] = {"archived": True, "environment": environment}
    if flags is not None:
        where["flags"] = list(flags)
    return _read(where)


def _read(where: dict[str, Any], segments: Iterable[int] = (), known: Collection[int] = ()) -> Definitions:
    """``segments`` are read even if no flag uses them, ``known`` ones never."""
    with connection.cursor() as cursor:
        strategies, used = read_strategies(cursor, where)
        parents = read_parents(cursor, where)
        cursor.execute(_narrowed(_FLAGS, where), where)
        found = [
            {
                "name": name,
                "project": project,
                "enabled": enabled,
                "impression_data": impression_data,
                "stale": stale,
                "variants": orjson.loads(variants),
                "strategies": strategies.get(flag_id, []),
                "dependencies": parents.get(flag_id, []),
                **({"archived": archived} if "archived" in where else {}),
            }
            for flag_id, name, project, impression_data, stale, enabled, variants, archived in cursor.fetchall()
        ]
        documents = read_segments(cursor, used.union(segments).difference(known))
    return Definitions(found, documents)


def _narrowed(statement: str, where: Mapping[str, Any]) -> str:
    conditions = [
        *([_IN_PROJECTS] if "projects" in where else ()),
        *(() if "archived" in where else [_ACTIVE]),
        *([_NAMED] if "flags" in where else ()),
        *([_NUMBERED] if "ids" in where else ()),
    ]
    return statement.format(where=" AND ".join(conditions or ["true"]))


def read_strategies(cursor: Any, where: dict[str, Any]) -> tuple[dict[int, list[Document]], set[int]]:
    by_flag: dict[int, list[Document]] = defaultdict(list)
    used: set[int] = set()
    cursor.execute(_narrowed(_STRATEGIES, where), where)
    for flag_id, strategy_id, segments, *values in cursor.fetchall():
        used.update(segments)
        by_flag[flag_id].append(from_row(values, id=strategy_id, segments=segments))
    return by_flag, used


def read_parents(cursor: Any, where: dict[str, Any]) -> dict[int, list[Document]]:
    by_flag: dict[int, list[Document]] = defaultdict(list)
    cursor.execute(_narrowed(_PARENTS, where), where)
    for flag_id, parent, enabled, variants in cursor.fetchall():
        by_flag[flag_id].append({"feature": parent, "enabled": enabled, "variants": orjson.loads(variants)})
    return by_flag


def read_segments(cursor: Any, ids: Iterable[int]) -> dict[int, Document]:
    cursor.execute(_SEGMENTS, {"segments": sorted(ids)})
    return {
        segment_id: {"id": segment_id, "name": name, "constraints": orjson.loads(constraints)}
        for segment_id, name, constraints in cursor.fetchall()
    }
