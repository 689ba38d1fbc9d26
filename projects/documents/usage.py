"""Where segments and context fields are used: by which strategies of which flags."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet

from groups.access import Caller
from projects.models import Strategy

# Stored constraints may be odd: only lists are looked into, and only objects in them.
_CONTEXT_FIELDS = """
SELECT c ->> 'contextName', count(DISTINCT f.id), count(DISTINCT f.project_id)
  FROM projects_strategy s
  JOIN projects_flag f ON f.id = s.flag_id AND f.archived_at IS NULL
 CROSS JOIN LATERAL jsonb_array_elements(
       CASE WHEN jsonb_typeof(s.constraints) = 'array' THEN s.constraints ELSE '[]' END) AS c
 WHERE jsonb_typeof(c) = 'object' AND (%(projects)s::text[] IS NULL OR f.project_id = ANY(%(projects)s))
 GROUP BY 1
"""
_SEGMENTS = """
SELECT l.segment_id, count(DISTINCT f.id), count(DISTINCT f.project_id)
  FROM projects_strategysegment l
  JOIN projects_strategy s ON s.id = l.strategy_id
  JOIN projects_flag f ON f.id = s.flag_id AND f.archived_at IS NULL
 WHERE %(projects)s::text[] IS NULL OR f.project_id = ANY(%(projects)s)
 GROUP BY 1
"""
Usage = dict[Any, dict[str, int]]
UNUSED = {"usedInFeatures": 0, "usedInProjects": 0}


def context_field_usage(caller: Caller) -> Usage:
    """By field name, counting active flags in projects the caller may read. One statement."""
    return _usage(_CONTEXT_FIELDS, caller)


def segment_usage(caller: Caller) -> Usage:
    """By segment id, counting active flags in projects the caller may read. One statement."""
    return _usage(_SEGMENTS, caller)


def _usage(statement: str, caller: Caller) -> Usage:
    allowed = caller.readable_projects
    with connection.cursor() as cursor:
        cursor.execute(statement, {"projects": None if allowed is None else sorted(allowed)})
        return {key: {"usedInFeatures": f, "usedInProjects": p} for key, f, p in cursor.fetchall()}


def strategies_using_segment(segment_id: int, caller: Caller) -> list[dict[str, Any]]:
    return _strategies(Strategy.objects.filter(segments=segment_id), caller)


def strategies_using_context_field(name: str, caller: Caller) -> list[dict[str, Any]]:
    return _strategies(Strategy.objects.filter(constraints__contains=[{"contextName": name}]), caller)


def _strategies(strategies: "QuerySet[Strategy]", caller: Caller) -> list[dict[str, Any]]:
    """Those of active flags in projects the caller may read, by project, flag and environment."""
    allowed = caller.readable_projects
    if allowed is not None:
        strategies = strategies.filter(flag__project_id__in=allowed)
    rows = strategies.filter(flag__archived_at=None).order_by(
        "flag__project_id", "flag__name", "environment_id", "sort_order", "id"
    )
    columns = ("id", "flag__project_id", "flag__name", "name", "environment_id")
    return [
        {
            "id": str(pk),
            "projectId": project,
            "featureName": flag,
            "strategyName": name,
            "environment": environment,
        }
        for pk, project, flag, name, environment in rows.values_list(*columns)
    ]
