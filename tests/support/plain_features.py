"""The answer of /api/client/features, read and serialized as a whole: what the spliced one is compared with."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db import connections

from flagadmin.core.document import Document
from groups.models import ApiToken
from projects.definitions import read_segments
from projects.models import Dependency, Strategy, StrategySegment
from projects.strategies.fields import make_strategy_document
from sdk.base import read_token_scope
from sdk.features.api import FeaturesQuery, make_key_and_etag

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
        cursor.execute(_FLAGS, where)
        rows = cursor.fetchall()
        ids = [row[0] for row in rows]
        strategies = _strategies(ids, environment)
        parents = _parents(ids)
        listed = (strategy for each in strategies.values() for strategy in each)
        segments = read_segments(cursor, {segment for strategy in listed for segment in strategy["segments"]})
        inlined = segments if inline_segments else None
        flags = [_flag(row, strategies[row[0]], parents[row[0]], inlined) for row in rows]
    return flags, [segments[segment_id] for segment_id in sorted(segments)]


def _strategies(flags: list[int], environment: str) -> dict[int, list[Document]]:
    strategies: dict[int, list[Document]] = {flag: [] for flag in flags}
    for strategy in Strategy.objects.filter(flag__in=flags, environment=environment).order_by(
        "sort_order", "id"
    ):
        links = StrategySegment.objects.filter(strategy=strategy).order_by("id")
        segments = list(links.values_list("segment_id", flat=True))
        strategies[strategy.flag_id].append(make_strategy_document(strategy) | {"segments": segments})
    return strategies


def _parents(flags: list[int]) -> dict[int, list[Document]]:
    dependencies: dict[int, list[Document]] = {flag: [] for flag in flags}
    for row in Dependency.objects.filter(flag__in=flags).select_related("parent").order_by("id"):
        dependencies[row.flag_id].append(
            {"feature": row.parent.name, "enabled": row.enabled, "variants": row.variants}
        )
    return dependencies


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
    key, etag = make_key_and_etag(scope, query, using="default")
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
