"""Adds up hourly counts: by day when they are deleted, and by project for the whole installation."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from flagadmin.core.db.statements import fetch_row
from flagadmin.core.db.transactions import transactional
from projects.applications.usage_report import HOURS_KEPT

DAYS_KEPT = timedelta(days=91)
LATE_HOURS = 3
"""Hours that began this long before the last total are added up again, because reports arrive late."""

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
    """Adds up the latest hours of each project, and deletes totals as old as deleted hours."""
    with connection.cursor() as cursor:
        cursor.execute(_TOTALS)
        cursor.execute("DELETE FROM projects_usagetotal WHERE hour < %s", [now - HOURS_KEPT])
