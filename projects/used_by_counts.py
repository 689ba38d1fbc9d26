"""Counts the flags and projects that use each segment and each context field."""

from typing import Any

import orjson
from django.db import connection

from groups.access import Caller

# The context fields that built-in strategies read without naming them.
BUILT_IN_FIELDS = {
    "userWithId": "userId",
    "gradualRolloutUserId": "userId",
    "gradualRolloutSessionId": "sessionId",
    "remoteAddress": "remoteAddress",
}

# Stored JSON may have unexpected types: anything but lists of objects is ignored.
_LIST = "CASE WHEN jsonb_typeof({0}) = 'array' THEN {0} ELSE '[]' END"
_FLAG = "projects_flag f ON f.id = {0}.flag_id AND f.archived_at IS NULL"
# The fields that a strategy names itself, from its columns name, parameters, constraints and variants.
_OF_STRATEGY = f"""
    SELECT c ->> 'contextName' FROM jsonb_array_elements({_LIST.format("s.constraints")}) c
     WHERE jsonb_typeof(c) = 'object'
     UNION SELECT v ->> 'stickiness' FROM jsonb_array_elements({_LIST.format("s.variants")}) v
     WHERE jsonb_typeof(v) = 'object'
     UNION SELECT s.parameters ->> 'stickiness' WHERE jsonb_typeof(s.parameters) = 'object'
     UNION SELECT %(built_in)s::jsonb ->> s.name
"""  # noqa: S608 - our own text
_DEFAULTS = """
    SELECT e.project_id, d ->> 'name' AS name, d -> 'parameters' AS parameters, d -> 'constraints' AS constraints,
           d -> 'variants' AS variants, d -> 'segments' AS segments
      FROM (SELECT project_id, default_strategy AS d FROM projects_projectenvironment) e
     WHERE jsonb_typeof(d) = 'object'
"""
_SEGMENT_LINKS = f"""
    SELECT l.segment_id, f.id AS flag_id, f.project_id
      FROM projects_strategysegment l
      JOIN projects_strategy s ON s.id = l.strategy_id JOIN {_FLAG.format("s")}
     UNION ALL
    SELECT (i #>> '{{}}')::bigint, NULL, s.project_id
      FROM ({_DEFAULTS}) s CROSS JOIN LATERAL jsonb_array_elements({_LIST.format("s.segments")}) i
     WHERE jsonb_typeof(i) = 'number'
"""  # noqa: S608 - our own text
_SEGMENTS = f"SELECT segment_id AS name, flag_id, project_id FROM ({_SEGMENT_LINKS}) links"  # noqa: S608 - our own text
_CONTEXT_FIELDS = f"""
    SELECT field AS name, f.id AS flag_id, f.project_id
      FROM projects_strategy s JOIN {_FLAG.format("s")} CROSS JOIN LATERAL ({_OF_STRATEGY}) n (field)
     UNION ALL
    SELECT field, NULL, s.project_id FROM ({_DEFAULTS}) s CROSS JOIN LATERAL ({_OF_STRATEGY}) n (field)
     UNION ALL
    SELECT v ->> 'stickiness', f.id, f.project_id
      FROM projects_flagenvironment s JOIN {_FLAG.format("s")}
     CROSS JOIN LATERAL jsonb_array_elements({_LIST.format("s.variants")}) v WHERE jsonb_typeof(v) = 'object'
     UNION ALL
    SELECT c ->> 'contextName', l.flag_id, l.project_id
      FROM ({_SEGMENT_LINKS}) l JOIN projects_segment s ON s.id = l.segment_id
     CROSS JOIN LATERAL jsonb_array_elements({_LIST.format("s.constraints")}) c WHERE jsonb_typeof(c) = 'object'
     UNION ALL
    SELECT default_stickiness, NULL, id FROM projects_project
"""  # noqa: S608 - our own text
_COUNTS = """
    SELECT name, count(DISTINCT flag_id), count(DISTINCT project_id) FROM ({0}) used
     WHERE name IS NOT NULL AND (%(projects)s::text[] IS NULL OR project_id = ANY(%(projects)s)) GROUP BY 1
"""
Usage = dict[Any, dict[str, int]]
UNUSED = {"usedInFeatures": 0, "usedInProjects": 0}


def context_field_usage(caller: Caller) -> Usage:
    """Counts by field name, of active flags and projects that the caller may read. One SQL statement."""
    return _usage(_CONTEXT_FIELDS, caller)


def segment_usage(caller: Caller) -> Usage:
    """Counts by segment id, of active flags and projects that the caller may read. One SQL statement."""
    return _usage(_SEGMENTS, caller)


def _usage(used: str, caller: Caller) -> Usage:
    allowed = caller.readable_projects
    parameters = {
        "projects": None if allowed is None else sorted(allowed),
        "built_in": orjson.dumps(BUILT_IN_FIELDS).decode(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS.format(used), parameters)
        return {key: {"usedInFeatures": f, "usedInProjects": p} for key, f, p in cursor.fetchall()}
