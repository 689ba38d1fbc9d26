"""Builds the flag definitions that SDKs download and evaluate.

Strategies and variants have the same order as in the playground's engine, so that both give the same results.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
from django.db import connections

from projects.definitions import Document, read_parents, read_segments, read_strategies

_FLAGS = """
SELECT f.id, f.name, f.type, f.project_id, f.stale, f.description, f.impression_data,
       coalesce(e.enabled, false), coalesce(e.variants, '[]')
  FROM projects_flag f
  LEFT JOIN projects_flagenvironment e ON e.flag_id = f.id AND e.environment_id = %(environment)s
 WHERE f.archived_at IS NULL AND f.project_id = ANY(%(projects)s)
 ORDER BY f.name COLLATE "C"
"""


class ClientFlags(NamedTuple):
    """The active ``flags`` of a project, as configured in an environment, and the ``segments`` they use.

    Flags are in the order of their names, segments in that of their ids; there are none if they are inlined.
    """

    flags: list[Document]
    segments: list[Document]


def client_flags(
    projects: Iterable[str], environment: str, *, inline_segments: bool, using: str = "default"
) -> dict[str, ClientFlags]:
    """What SDKs need of each project. Four SQL statements, whatever the number of flags.

    ``inline_segments`` copies the constraints of segments into the strategies, for SDKs without segment
    support.
    """
    where: dict[str, Any] = {"projects": list(projects), "environment": environment}
    with connections[using].cursor() as cursor:
        strategies, used = read_strategies(cursor, where)
        parents = read_parents(cursor, where)
        segments = read_segments(cursor, used)
        inlined = segments if inline_segments else None
        cursor.execute(_FLAGS, where)
        flags: dict[str, list[Document]] = {project: [] for project in where["projects"]}
        used_by: dict[str, set[int]] = {project: set() for project in flags}
        for row in cursor.fetchall():
            flag_id, project = row[0], row[3]
            its_strategies = strategies.get(flag_id, [])
            flags[project].append(_flag(row, its_strategies, parents.get(flag_id, []), inlined))
            if not inline_segments:
                used_by[project].update(*(strategy["segments"] for strategy in its_strategies))
    return {
        project: ClientFlags(found, [segments[segment_id] for segment_id in sorted(used_by[project])])
        for project, found in flags.items()
    }


def _flag(
    row: tuple[Any, ...],
    strategies: list[Document],
    parents: list[Document],
    inlined: Mapping[int, Document] | None,
) -> Document:
    _, name, kind, project, stale, description, impression_data, enabled, variants = row
    active = [_strategy(strategy, inlined) for strategy in strategies if not strategy["disabled"]]
    flag = {
        "name": name,
        "type": kind,
        # Disabled strategies are left out. SDKs evaluate an empty list as on, so such a flag must be off.
        "enabled": enabled and (bool(active) or not strategies),
        "project": project,
        "stale": stale,
        "strategies": active,
        "variants": orjson.loads(variants),
        "description": description,
        "impressionData": impression_data,
    }
    return flag | {"dependencies": parents} if parents else flag


def _strategy(strategy: Document, inlined: Mapping[int, Document] | None) -> Document:
    document = {
        "name": strategy["name"],
        "constraints": strategy["constraints"],
        "parameters": strategy["parameters"],
        "variants": strategy["variants"],
    }
    if inlined is not None:
        for segment in strategy["segments"]:
            document["constraints"] = document["constraints"] + inlined[segment]["constraints"]
    elif strategy["segments"]:
        document["segments"] = strategy["segments"]
    return document
