"""Deletes old usage data. Runs periodically in ``serve``, or with the command ``cleanup_usage``.

Hourly counts are added up before they go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.utils import timezone

from flagadmin.core.db.statements import execute
from flagadmin.core.db.transactions import transactional
from projects.applications.impact_points import clean_points
from projects.applications.queries import refresh_lines_ahead
from projects.applications.usage_report import HOURS_KEPT
from projects.applications.usage_sums import DAYS_KEPT, delete_hours, refresh_totals

# Longer than the window in which instances are listed: an SDK reports its version only when it starts.
INSTANCES_KEPT = timedelta(days=30)
ROWS_PER_TRANSACTION = 20_000

_INSTANCES = """
DELETE FROM projects_applicationinstance WHERE ctid = ANY(ARRAY(
       SELECT i.ctid FROM projects_applicationinstance i
         LEFT JOIN projects_application a ON a.id = i.application_id
        WHERE i.seen_at < %s OR a.id IS NULL LIMIT %s))
"""
# Rows that a report wrote while its flag or application was being deleted.
_ORPHANS = """
DELETE FROM projects_flagusage u
 WHERE NOT EXISTS (SELECT FROM projects_flag f WHERE f.id = u.flag_id)
    OR NOT EXISTS (SELECT FROM projects_application a WHERE a.id = u.application_id)
"""
_APPLICATIONS = """
DELETE FROM projects_application a
 WHERE a.created_at < %s
   AND NOT EXISTS (SELECT FROM projects_applicationinstance i WHERE i.application_id = a.id)
   AND NOT EXISTS (SELECT FROM projects_flagusage u WHERE u.application_id = a.id)
"""


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The number of deleted rows, and of rebuilt rows of applications lists."""

    hours: int
    instances: int
    applications: int
    lines: int


def clean_usage(*, now: datetime | None = None) -> CleanupResult:
    """Deletes hourly counts after two days, instances after thirty, and applications without instances and
    usage."""
    now = now or timezone.now()
    long_ago = now - max(INSTANCES_KEPT, settings.APPLICATION_INSTANCE_WINDOW)
    hours = _delete_in_parts(delete_hours, now - HOURS_KEPT - timedelta(hours=1))
    _delete("DELETE FROM projects_usageday WHERE day < %s", (now - DAYS_KEPT).date())
    refresh_totals(now=now)
    _delete("DELETE FROM projects_unknownflag WHERE seen_at < %s", now - HOURS_KEPT)
    _delete("DELETE FROM projects_ignoredreport WHERE hour < %s", now - HOURS_KEPT)
    _delete("DELETE FROM projects_impactseries WHERE seen_at < %s", long_ago)
    clean_points(now)
    instances = _delete_in_parts(partial(_delete, _INSTANCES), long_ago)
    _delete(_ORPHANS)
    return CleanupResult(
        hours=hours,
        instances=instances,
        applications=_delete(_APPLICATIONS, long_ago),
        lines=refresh_lines_ahead(timedelta(days=1)),
    )


def _delete_in_parts(delete: Callable[[datetime, int], int], before: datetime) -> int:
    """Deletes in short transactions, so that other requests do not wait."""
    total = 0
    while deleted := delete(before, ROWS_PER_TRANSACTION):
        total += deleted
    return total


@transactional
def _delete(statement: str, *parameters: Any) -> int:
    return execute(statement, parameters or None)
