"""Builds the flag definitions that SDKs download and evaluate.

Strategies and variants have the same order as in the playground's engine, so that both give the same results.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from django.db import connections

from flagadmin.core.document import Document
from playground.engine.definitions import SegmentDefinition, StrategyDefinition
from projects.definition_parts import FlagParts, read_flag_parts, read_segments
from projects.definitions import read_id_batches

_FLAGS = """
SELECT id, name, type, project_id, stale, description, impression_data FROM projects_flag
 WHERE id = ANY(%(ids)s) ORDER BY name COLLATE "C"
"""


class ClientFlag(NamedTuple):
    """An active flag as configured in an environment, and the ids of further segments that it needs."""

    document: Document
    segments: tuple[int, ...]


class ClientFlags(NamedTuple):
    """Some flags by name, and the ``segments`` that no earlier flags use."""

    flags: list[ClientFlag]
    segments: list[SegmentDefinition]


def read_client_flags(
    projects: Iterable[str],
    environment: str,
    *,
    inline_segments: bool,
    flags: Collection[str] | None = None,
    using: str = "default",
) -> Iterator[ClientFlags]:
    """Reads the projects' flags for SDKs, at most BATCH flags at once. Read them in one transaction.

    Only the given ``flags``, if any. ``inline_segments`` copies the constraints of segments into the strategies, for
    SDKs without segment support.
    """
    segments: dict[int, SegmentDefinition] = {}
    with connections[using].cursor() as cursor:
        for ids in read_id_batches(cursor, projects, flags):
            parts = read_flag_parts(cursor, ids, environment)
            new = read_segments(cursor, parts.segments.difference(segments))
            segments |= new
            cursor.execute(_FLAGS, {"ids": ids})
            inlined = segments if inline_segments else None
            read = [_make_client_flag(row, parts, inlined) for row in cursor.fetchall()]
            yield ClientFlags(read, [] if inline_segments else list(new.values()))


def _make_client_flag(
    row: tuple[Any, ...], parts: FlagParts, inlined: Mapping[int, SegmentDefinition] | None
) -> ClientFlag:
    document = _make_flag(row, parts, inlined)
    if inlined is not None:
        return ClientFlag(document, ())
    strategies = parts.strategies.get(row[0], ())
    return ClientFlag(document, tuple(chain(*(strategy["segments"] for strategy in strategies))))


def _make_flag(
    row: tuple[Any, ...], parts: FlagParts, inlined: Mapping[int, SegmentDefinition] | None
) -> Document:
    flag_id, name, kind, project, stale, description, impression_data = row
    strategies = parts.strategies.get(flag_id, [])
    active = [_make_strategy(strategy, inlined) for strategy in strategies if not strategy["disabled"]]
    enabled, variants = parts.read_state(flag_id)
    flag = {
        "name": name,
        "type": kind,
        # Disabled strategies are left out. SDKs evaluate an empty list as on, so such a flag must be off.
        "enabled": enabled and (bool(active) or not strategies),
        "project": project,
        "stale": stale,
        "strategies": active,
        "variants": variants,
        "description": description,
        "impressionData": impression_data,
    }
    parents = parts.parents.get(flag_id)
    return flag | {"dependencies": parents} if parents else flag


def _make_strategy(strategy: StrategyDefinition, inlined: Mapping[int, SegmentDefinition] | None) -> Document:
    document: Document = {
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
