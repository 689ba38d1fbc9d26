"""The answer of /api/client/features, read and serialised as a whole: what the spliced one is compared with."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db import connections

from groups.models import ApiToken
from projects.client_api.features_cache import FeaturesQuery, etag_of
from projects.client_api.token_scope import read_token_scope
from projects.definitions import Document, read_parents, read_segments, read_strategies

_FLAGS = """
SELECT f.id, f.name, f.type, f.project_id, f.stale, f.description, f.impression_data,
       coalesce(e.enabled, false), coalesce(e.variants, '[]')
  FROM projects_flag f
  LEFT JOIN projects_flagenvironment e ON e.flag_id = f.id AND e.environment_id = %(environment)s
 WHERE f.archived_at IS NULL AND f.project_id = ANY(%(projects)s)
 ORDER BY f.name COLLATE "C"
"""


def client_features(
    projects: Iterable[str], environment: str, *, inline_segments: bool, using: str = "default"
) -> tuple[list[Document], list[Document]]:
    """The active flags of the projects, by name, and the segments they use, by id."""
    where: dict[str, Any] = {"projects": list(projects), "environment": environment}
    with connections[using].cursor() as cursor:
        strategies, used = read_strategies(cursor, where)
        parents = read_parents(cursor, where)
        segments = read_segments(cursor, used)
        inlined = segments if inline_segments else None
        cursor.execute(_FLAGS, where)
        flags = [
            _flag(row, strategies.get(row[0], []), parents.get(row[0], []), inlined)
            for row in cursor.fetchall()
        ]
    return flags, [segments[segment_id] for segment_id in sorted(segments)]


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


def plain_features(token: ApiToken, query: FeaturesQuery) -> bytes:
    """The answer to a query without a filter, as one JSON document."""
    scope = read_token_scope(token, using="default")
    key, etag = etag_of(scope, query, using="default")
    flags, segments = client_features(
        scope.projects, scope.environment, inline_segments=not query.knows_segments
    )
    echoed: dict[str, Any] = {} if scope.all_projects else {"project": list(scope.projects)}
    echoed |= {"environment": scope.environment, "inlineSegmentConstraints": not query.knows_segments}
    document: dict[str, Any] = {"version": 2, "features": flags, "query": echoed}
    if query.knows_segments:
        document["segments"] = segments
    document["meta"] = {"revisionId": scope.revision, "etag": etag, "queryHash": key[:4].hex()}
    return orjson.dumps(document)
