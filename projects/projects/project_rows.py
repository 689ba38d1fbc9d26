"""Rows of the console's list of projects, besides the numbers of flags."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from flagadmin.core.db.statements import fetch_rows
from projects.history.queries import ACCESS_TYPES
from projects.projects.queries import compute_health, count_flags

_STATE = """
SELECT p.id,
       (SELECT count(DISTINCT f.id) FROM projects_flag f
          JOIN projects_flagenvironment s ON s.flag_id = f.id AND s.enabled
          JOIN projects_environment e ON e.name = s.environment_id AND e.type = 'production'
          JOIN projects_projectenvironment u ON u.project_id = f.project_id AND u.environment_id = s.environment_id
         WHERE f.project_id = p.id AND f.archived_at IS NULL),
       (SELECT coalesce(sum(t.yes + t.no), 0)::bigint FROM projects_usagetotal t
         WHERE t.project_id = p.id AND t.hour > %(since)s),
       (SELECT a.created_at FROM audit_auditevent a
         WHERE a.project = p.id AND NOT a.type = ANY(%(hidden)s) ORDER BY a.id DESC LIMIT 1)
  FROM projects_project p WHERE p.id = ANY(%(projects)s)
"""


@dataclass(frozen=True, slots=True)
class ProjectState:
    """``on``: active flags that are on in production. ``evaluations``: of the last 24 hours, ten minutes old at most.

    ``health``: the percentage of active flags that are neither stale nor past their lifetime.
    """

    on: int
    evaluations: int
    changed_at: datetime | None
    health: int


def read_project_states(ids: Sequence[str]) -> dict[str, ProjectState]:
    """Reads the states by project, in two queries."""
    counts = count_flags(ids)
    since = timezone.now() - timedelta(hours=24)
    return {
        project: ProjectState(on, evaluations, changed_at, compute_health(counts[project]))
        for project, on, evaluations, changed_at in fetch_rows(
            _STATE, {"projects": list(ids), "since": since, "hidden": ACCESS_TYPES}
        )
    }
