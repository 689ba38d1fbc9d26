"""Summaries of flags in each environment of their project, as shown in lists.

Every function accepts any number of flags and runs a fixed number of queries.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from projects.models import Flag, UsageHour

Place = tuple[int, str]
"""A flag's id and an environment name."""

_SWITCHES = """
SELECT flag_id, environment_id, enabled, jsonb_array_length(variants)
  FROM projects_flagenvironment WHERE flag_id = ANY(%s)
"""
# All strategies, and the enabled ones.
_STRATEGY_COUNTS = """
SELECT flag_id, environment_id, count(*), count(*) FILTER (WHERE NOT disabled)
  FROM projects_strategy WHERE flag_id = ANY(%s) GROUP BY flag_id, environment_id
"""
_LAST_SEEN = """
SELECT flag_id, environment, seen_at FROM projects_flaglastseen WHERE flag_id = ANY(%s)
"""
_ENVIRONMENTS = """
SELECT p.project_id, e.name, e.type, e.sort_order
  FROM projects_projectenvironment p JOIN projects_environment e ON e.name = p.environment_id
 WHERE p.project_id = ANY(%s) ORDER BY e.sort_order, e.name
"""

NO_EVALUATIONS = {"yes": 0, "no": 0}


def read_environment_summaries(flags: Sequence[Flag]) -> dict[int, list[Document]]:
    """Reads for each flag one summary per environment of its project, in sort order. Four queries."""
    ids = [flag.pk for flag in flags]
    with connection.cursor() as cursor:
        switches, counts, seen = (
            _read_by_place(cursor, statement, ids) for statement in (_SWITCHES, _STRATEGY_COUNTS, _LAST_SEEN)
        )
        environments = _read_environments(cursor, {flag.project_id for flag in flags})
    summaries: dict[int, list[Document]] = {}
    for flag in flags:
        summaries[flag.pk] = []
        for name, kind, order in environments[flag.project_id]:
            enabled, variant_count = switches.get((flag.pk, name), (False, 0))
            total, active = counts.get((flag.pk, name), (0, 0))
            summaries[flag.pk].append(
                {
                    "name": name,
                    "enabled": enabled,
                    "type": kind,
                    "sortOrder": order,
                    "variantCount": variant_count,
                    "lastSeenAt": iso(*seen.get((flag.pk, name), (None,))),
                    "hasStrategies": total > 0,
                    "hasEnabledStrategies": active > 0,
                }
            )
    return summaries


def count_evaluations(ids: Sequence[int]) -> dict[Place, Document]:
    """Counts SDKs' evaluations of each flag in each environment in the last hour, by result."""
    rows = UsageHour.objects.filter(flag_id__in=ids, hour__gt=timezone.now() - timedelta(hours=1))
    summed = rows.order_by().values("flag_id", "environment").annotate(yes_sum=Sum("yes"), no_sum=Sum("no"))
    return {
        (row["flag_id"], row["environment"]): {"yes": row["yes_sum"], "no": row["no_sum"]} for row in summed
    }


def _read_by_place(cursor: Any, statement: str, ids: Sequence[int]) -> dict[Place, tuple[Any, ...]]:
    cursor.execute(statement, [list(ids)])
    return {(flag_id, environment): tuple(values) for flag_id, environment, *values in cursor.fetchall()}


def _read_environments(cursor: Any, projects: Iterable[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The name, type and sort order of each environment of the projects."""
    cursor.execute(_ENVIRONMENTS, [list(projects)])
    environments: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for project, *environment in cursor.fetchall():
        environments[project].append(tuple(environment))
    return environments
