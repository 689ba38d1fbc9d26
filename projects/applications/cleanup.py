"""Deletes old usage data. Runs periodically in ``serve``, or with the command ``cleanup_usage``.

Adds up hourly counts before deleting them.

Changes the details that users enter about an application, and deletes applications.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.db.statements import execute, fetch_row
from flagadmin.core.db.transactions import transactional
from groups.access import Caller, Permission
from projects.applications.documents import find_readable_applications
from projects.applications.impact_metrics import clean_points
from projects.applications.queries import refresh_lines_ahead
from projects.applications.usage_report import HOURS_KEPT
from projects.models import Application, ApplicationInstance, FlagUsage, ProjectApplication, UnknownFlag

# Longer than the window of listed instances: an SDK reports its version only when it starts.
INSTANCES_KEPT = timedelta(days=30)
ROWS_PER_TRANSACTION = 20_000

_INSTANCES = """
DELETE FROM projects_applicationinstance WHERE ctid = ANY(ARRAY(
       SELECT i.ctid FROM projects_applicationinstance i
         LEFT JOIN projects_application a ON a.id = i.application_id
        WHERE i.seen_at < %s OR a.id IS NULL LIMIT %s))
"""
# Rows written by a report while its flag or application was being deleted.
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
_ORIGINS = """
DELETE FROM projects_impactorigin WHERE id NOT IN (
       SELECT origin FROM projects_impactseries UNION SELECT origin FROM projects_impactpoint)
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
    _delete(_ORIGINS)
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


DAYS_KEPT = timedelta(days=91)
LATE_HOURS = 3
"""Hours within this time before the last total are added up again, because reports arrive late."""

# Every hour is added to its day exactly once, in the statement that deletes it. Orphans are only deleted.
_DELETE_HOURS = """
WITH gone AS (
    DELETE FROM projects_usagehour WHERE ctid = ANY(ARRAY(
           SELECT ctid FROM projects_usagehour WHERE hour < %(before)s LIMIT %(limit)s))
    RETURNING flag_id, environment, (hour AT TIME ZONE 'UTC')::date AS day, yes, no, variants
), counted AS (
    SELECT g.* FROM gone g JOIN projects_flag f ON f.id = g.flag_id WHERE g.day >= %(first_day)s
), summed AS (
    SELECT flag_id, environment, day, sum(yes) AS yes, sum(no) AS no FROM counted GROUP BY 1, 2, 3
), named AS (
    SELECT flag_id, environment, day, key, sum(value::bigint) AS number
      FROM counted, jsonb_each_text(variants) GROUP BY 1, 2, 3, 4
), objects AS (
    SELECT flag_id, environment, day, jsonb_object_agg(key, number) AS variants FROM (
           SELECT *, row_number() OVER (PARTITION BY flag_id, environment, day ORDER BY number DESC, key) AS place
             FROM named) AS ranked
     WHERE place <= %(variants)s GROUP BY 1, 2, 3
), added AS (
    INSERT INTO projects_usageday AS known (flag_id, environment, day, yes, no, variants)
    SELECT flag_id, environment, day, yes, no, coalesce(variants, '{}')
      FROM summed LEFT JOIN objects USING (flag_id, environment, day) ORDER BY 1, 2, 3
    ON CONFLICT (flag_id, environment, day) DO UPDATE SET
        yes = known.yes + excluded.yes, no = known.no + excluded.no,
        variants = CASE WHEN excluded.variants = '{}' THEN known.variants ELSE (
            SELECT jsonb_object_agg(key, number) FROM (
                SELECT key, sum(value::bigint) AS number
                  FROM (SELECT * FROM jsonb_each_text(known.variants)
                        UNION ALL SELECT * FROM jsonb_each_text(excluded.variants)) AS counts
                 GROUP BY key ORDER BY 2 DESC, 1 LIMIT %(variants)s) AS merged) END
)
SELECT count(*) FROM gone
"""
_TOTALS = f"""
INSERT INTO projects_usagetotal AS known (hour, project_id, yes, no)
SELECT h.hour, f.project_id, sum(h.yes), sum(h.no)
  FROM projects_usagehour h JOIN projects_flag f ON f.id = h.flag_id
 WHERE h.hour >= coalesce((SELECT max(hour) FROM projects_usagetotal) - interval '{LATE_HOURS} hours', '-infinity')
 GROUP BY 1, 2
ON CONFLICT (hour, project_id) DO UPDATE SET yes = excluded.yes, no = excluded.no
 WHERE (known.yes, known.no) IS DISTINCT FROM (excluded.yes, excluded.no)
"""  # noqa: S608 - a constant


@transactional
def delete_hours(before: datetime, limit: int) -> int:
    """Deletes up to ``limit`` hourly counts of hours that began before then. Returns their number."""
    parameters: dict[str, Any] = {
        "before": before,
        "limit": limit,
        "first_day": (before + HOURS_KEPT - DAYS_KEPT).date(),
        "variants": settings.REPORT_VARIANTS_LIMIT,
    }
    return int(fetch_row(_DELETE_HOURS, parameters)[0])


@transactional
def refresh_totals(*, now: datetime) -> None:
    """Adds up the latest hours of each project, and deletes totals that are as old as deleted hours."""
    with connection.cursor() as cursor:
        cursor.execute(_TOTALS)
        cursor.execute("DELETE FROM projects_usagetotal WHERE hour < %s", [now - HOURS_KEPT])


@transactional
def update_application(name: str, changes: Mapping[str, Any], *, caller: Caller) -> Application:
    """Changes the given ones of ``description url color icon strategies``. Raises NotFound, NoAccess."""
    application = access_application_for_update(caller, name)
    changed = {key: value for key, value in changes.items() if getattr(application, key) != value}
    if changed:
        before = {key: getattr(application, key) for key in changed}
        for key, value in changed.items():
            setattr(application, key, value)
        application.save(update_fields=list(changed))
        event = Event(type=EventType.APPLICATION_UPDATED, subject=name, before=before, after=changed)
        record(event, actor=caller)
    return application


@transactional
def delete_application(name: str, *, caller: Caller) -> None:
    """Deletes an application with its instances and usage. Does nothing if there is none. Raises NoAccess.

    Its next report creates it again. Its hourly counts are deleted when they expire.
    """
    caller.check(Permission.UPDATE_APPLICATION)
    application = find_readable_applications(caller).select_for_update().filter(name=name).first()
    if application is None:
        return
    for rows in (ApplicationInstance, FlagUsage, ProjectApplication, UnknownFlag):
        rows._base_manager.filter(application_id=application.pk).delete()
    application.delete()
    record(Event(type=EventType.APPLICATION_DELETED, subject=name, before={"appName": name}), actor=caller)


def access_application_for_update(caller: Caller, name: str) -> Application:
    readable = find_readable_applications(caller).select_for_update()
    application = get_or_404(readable, f"Application {name} not found.", name=name)
    caller.check(Permission.UPDATE_APPLICATION)
    return application
