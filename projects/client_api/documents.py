"""Builds the flag definitions that SDKs download and evaluate.

Strategies and variants have the same order as in the playground's engine, so that both give the same results.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import orjson
from django.db import connections

from projects.definitions import Document, batches_of_ids, read_parents, read_segments, read_strategies

_FLAGS = """
SELECT f.id, f.name, f.type, f.project_id, f.stale, f.description, f.impression_data,
       coalesce(e.enabled, false), coalesce(e.variants, '[]')
  FROM projects_flag f
  LEFT JOIN projects_flagenvironment e ON e.flag_id = f.id AND e.environment_id = %(environment)s
 WHERE f.id = ANY(%(ids)s)
 ORDER BY f.name COLLATE "C"
"""


class ClientFlag(NamedTuple):
    """An active flag as configured in an environment, and the ids of the segments it needs beside it."""

    document: Document
    segments: tuple[int, ...]


class ClientFlags(NamedTuple):
    """Some flags in the order of their names, and those of their ``segments`` that no flags before them use."""

    flags: list[ClientFlag]
    segments: list[Document]


def client_flag_batches(
    projects: Iterable[str], environment: str, *, inline_segments: bool, using: str = "default"
) -> Iterator[ClientFlags]:
    """What SDKs need of the projects, at most BATCH flags at once. Read them in one transaction.

    ``inline_segments`` copies the constraints of segments into the strategies, for SDKs without segment
    support.
    """
    segments: dict[int, Document] = {}
    with connections[using].cursor() as cursor:
        for ids in batches_of_ids(cursor, {"projects": list(projects), "environment": environment}):
            where: dict[str, Any] = {"ids": ids, "environment": environment}
            strategies, used = read_strategies(cursor, where)
            parents = read_parents(cursor, where)
            new = read_segments(cursor, used.difference(segments))
            segments |= new
            cursor.execute(_FLAGS, where)
            flags = []
            for row in cursor.fetchall():
                its_strategies = strategies.get(row[0], [])
                inlined = segments if inline_segments else None
                document = _flag(row, its_strategies, parents.get(row[0], []), inlined)
                its_segments = (
                    () if inline_segments else chain(*(each["segments"] for each in its_strategies))
                )
                flags.append(ClientFlag(document, tuple(its_segments)))
            yield ClientFlags(flags, [] if inline_segments else list(new.values()))


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
