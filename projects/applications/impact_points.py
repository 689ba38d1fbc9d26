"""Keeps what impact metrics reported in each minute for two days, and in each hour for thirty."""

from datetime import datetime, timedelta

from django.conf import settings

from flagadmin.core.db.statements import execute, fetch_row
from flagadmin.core.db.transactions import transactional

MINUTES_KEPT, HOURS_KEPT = timedelta(days=2), timedelta(days=30)

_ADDED_BUCKETS = """CASE WHEN known.kind = 'histogram' THEN (
    SELECT jsonb_object_agg(t.key, t.value::bigint + coalesce((known.buckets ->> t.key)::bigint, 0))
      FROM jsonb_each_text(excluded.buckets) t) ELSE excluded.buckets END"""
ADD_POINTS = f"""
INSERT INTO projects_impactpoint AS known (name, labels, kind, value, count, buckets, at, is_hour)
SELECT reported.*, date_trunc('minute', %s::timestamptz), false
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[], %s::bigint[], %s::jsonb[]) AS reported
ON CONFLICT (name, at, labels, is_hour) DO UPDATE SET
    value = CASE WHEN known.kind = 'gauge' THEN excluded.value ELSE known.value + excluded.value END,
    count = known.count + excluded.count,
    buckets = coalesce({_ADDED_BUCKETS}, excluded.buckets)
"""  # noqa: S608 - constants
"""Takes the time and the columns of series."""
_ADD_UP = """
WITH minutes AS (
    DELETE FROM projects_impactpoint WHERE NOT is_hour AND at < date_trunc('hour', %s::timestamptz)
    RETURNING name, labels, kind, date_trunc('hour', at) AS hour, value, count, buckets),
counted AS (
    SELECT name, labels, hour, bound.key, sum(bound.value::bigint) AS number
      FROM minutes, jsonb_each_text(buckets) AS bound GROUP BY name, labels, hour, bound.key),
merged AS (
    SELECT name, labels, hour, jsonb_object_agg(key, number) AS buckets FROM counted GROUP BY name, labels, hour)
INSERT INTO projects_impactpoint (name, labels, kind, at, is_hour, value, count, buckets)
SELECT name, labels, min(kind), hour, true,
       CASE WHEN min(kind) = 'gauge' THEN avg(value) ELSE sum(value) END, sum(count),
       coalesce((SELECT m.buckets FROM merged m
                  WHERE m.name = minutes.name AND m.labels = minutes.labels AND m.hour = minutes.hour), '{}')
  FROM minutes GROUP BY name, labels, hour
ON CONFLICT DO NOTHING
"""
_BEYOND = "SELECT at FROM projects_impactpoint ORDER BY at DESC OFFSET %s LIMIT 1"


@transactional
def clean_points(now: datetime) -> None:
    """Adds up the minutes of hours that are older than two days. Deletes old hours, and the oldest beyond the limit."""
    execute(_ADD_UP, [now - MINUTES_KEPT])
    execute("DELETE FROM projects_impactpoint WHERE at < %s", [now - HOURS_KEPT])
    if beyond := fetch_row(_BEYOND, [settings.IMPACT_POINTS_LIMIT]):
        execute("DELETE FROM projects_impactpoint WHERE at <= %s", beyond)
