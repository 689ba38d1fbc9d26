"""Copies traces from the other database: dates, stages, last uses, usage of 30 days, and its audit events.

Rows go through temporary tables, so that memory stays small. A second run finds the same rows and writes nothing.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from flagadmin.core.db.statements import execute
from importer.models import SourceEvent
from importer.moving.reading.database import SourceDatabase
from importer.moving.reading.installation import Installation
from importer.moving.report import Kind, Line
from projects.applications.usage_report import HOURS_KEPT
from projects.models import LifecycleStage

USAGE_MOVED = timedelta(days=30)
MARGIN = 10_000  # ids of events, which may be committed in another order
NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")

Lines = Iterator[Line]


def move_traces(installation: Installation, database: SourceDatabase) -> Lines:
    """Moves the traces of moved flags only: another flag here may have the name of a flag that did not move."""
    names = installation.flag_names
    yield from _move_dates(database, names)
    yield from _move_stages(database, names)
    yield from _move_last_seen(database, names)
    yield from _move_usage(database, names)
    yield from _move_events(database, installation.address)


def move_listed_dates(installation: Installation) -> Lines:
    """Moves the dates in lists of flags, which a database has too."""
    flags = [flag for project in installation.projects for flag in project.listed]
    yield from _write_dates(
        (flag.name, flag.created_at, flag.archived_at) for flag in flags if flag.created_at
    )
    seen = (
        (flag.name, each.name, each.seen_at) for flag in flags for each in flag.environments if each.seen_at
    )
    yield from _write_last_seen(seen)


# Dates and last uses ---------------------------------------------------------------------------------------


def _move_dates(database: SourceDatabase, names: Collection[str]) -> Lines:
    if database.has("features", "name", "created_at", "archived_at"):
        rows = database.stream(
            "SELECT name, created_at, archived_at FROM features WHERE created_at IS NOT NULL"
        )
        yield from _write_dates(row for row in rows if row[0] in names)


def _write_dates(rows: Iterable[Sequence[Any]]) -> Lines:
    _fill("moved_dates", "name text, created_at timestamptz, archived_at timestamptz", rows)
    yield from _write(
        "dates of creation and archiving",
        """
        UPDATE projects_flag f SET created_at = least(f.created_at, m.created_at),
               archived_at = CASE WHEN f.archived_at IS NULL THEN NULL
                                  ELSE greatest(m.created_at, least(f.archived_at, m.archived_at)) END
          FROM moved_dates m
         WHERE m.name = f.name AND (m.created_at < f.created_at OR m.archived_at < f.archived_at)
        """,
    )


def _move_stages(database: SourceDatabase, names: Collection[str]) -> Lines:
    """Moves the times when flags entered their stages. If both sides have a stage, the earlier time counts."""
    if database.has("feature_lifecycles", "feature", "stage", "created_at", "status", "status_value"):
        query = """SELECT feature, stage, created_at, left(status, 16), left(status_value, 255)
                     FROM feature_lifecycles WHERE created_at IS NOT NULL AND stage = ANY(%s)"""
        rows = database.stream(query, [LifecycleStage.Stage.values])
        columns = "name text, stage text, entered_at timestamptz, status text, status_value text"
        _fill("moved_stages", columns, (row for row in rows if row[0] in names))
        yield from _write(
            "lifecycle stages",
            """
            INSERT INTO projects_lifecyclestage AS known (flag_id, stage, entered_at, status, status_value)
            SELECT DISTINCT ON (f.id, m.stage) f.id, m.stage, m.entered_at, m.status, m.status_value
              FROM moved_stages m JOIN projects_flag f ON f.name = m.name
             WHERE m.stage <> 'archived' OR f.archived_at IS NOT NULL
             ORDER BY f.id, m.stage, m.entered_at
            ON CONFLICT (flag_id, stage) DO UPDATE SET entered_at = excluded.entered_at
             WHERE excluded.entered_at < known.entered_at
            """,
        )


def _move_last_seen(database: SourceDatabase, names: Collection[str]) -> Lines:
    """Moves the last uses of flags, tokens and accounts."""
    if database.has("last_seen_at_metrics", "feature_name", "environment", "last_seen_at"):
        rows = database.stream("SELECT feature_name, environment, last_seen_at FROM last_seen_at_metrics")
        yield from _write_last_seen(row for row in rows if row[0] in names)
    if database.has("api_tokens", "secret", "seen_at"):
        query = """SELECT encode(sha256(convert_to(secret, 'UTF8')), 'hex'), seen_at FROM api_tokens
                    WHERE seen_at IS NOT NULL"""
        _fill("moved_tokens", "digest text, seen_at timestamptz", database.stream(query))
        yield from _write(
            "last uses of tokens",
            """
            UPDATE groups_apitoken t SET seen_at = least(m.seen_at, now()) FROM moved_tokens m
             WHERE t.secret_hash = m.digest AND m.seen_at > coalesce(t.seen_at, '-infinity')
            """,
        )


def _write_last_seen(rows: Iterable[Sequence[Any]]) -> Lines:
    _fill("moved_seen", "name text, environment text, seen_at timestamptz", rows)
    yield from _write(
        "last uses of flags",
        """
        INSERT INTO projects_flaglastseen AS known (flag_id, environment, seen_at)
        SELECT f.id, m.environment, least(m.seen_at, now())
          FROM moved_seen m JOIN projects_flag f ON f.name = m.name ORDER BY 1, 2
        ON CONFLICT (flag_id, environment) DO UPDATE SET seen_at = excluded.seen_at
         WHERE excluded.seen_at > known.seen_at
        """,
    )


# Usage -----------------------------------------------------------------------------------------------------

_HOURS = """
SELECT m.feature_name, m.environment, m.app_name, m.timestamp, coalesce(m.yes, 0), coalesce(m.no, 0), (
       SELECT coalesce(jsonb_object_agg(v.variant, v.count), '{{}}')::text FROM client_metrics_env_variants v
        WHERE (v.feature_name, v.app_name, v.environment, v.timestamp)
            = (m.feature_name, m.app_name, m.environment, m.timestamp) AND v.count > 0)
  FROM client_metrics_env m WHERE m.timestamp >= %(since)s AND m.timestamp <= %(now)s {without}
"""
_DAYS = """
UNION ALL
SELECT m.feature_name, m.environment, m.app_name, m.date::timestamp AT TIME ZONE 'UTC', coalesce(m.yes, 0),
       coalesce(m.no, 0), (
       SELECT coalesce(jsonb_object_agg(v.variant, v.count), '{{}}')::text FROM client_metrics_env_variants_daily v
        WHERE (v.feature_name, v.app_name, v.environment, v.date)
            = (m.feature_name, m.app_name, m.environment, m.date) AND v.count > 0)
  FROM client_metrics_env_daily m WHERE m.date >= %(since)s::date AND m.date <= %(now)s::date
"""
_WITHOUT_DAYS = (
    "AND (m.timestamp AT TIME ZONE 'UTC')::date NOT IN (SELECT date FROM client_metrics_env_daily)"
)
_APPLICATIONS = """
INSERT INTO projects_application (name, folded_name, strategies, created_at)
SELECT m.application, lower(m.application), '{}', min(m.hour)
  FROM moved_usage m JOIN projects_flag f ON f.name = m.flag GROUP BY 1 ORDER BY 1
ON CONFLICT (name) DO NOTHING
"""
_USES = """
DROP TABLE IF EXISTS moved_uses;
CREATE TEMPORARY TABLE moved_uses ON COMMIT DROP AS
SELECT f.id AS flag_id, a.id AS application_id, m.environment, m.hour, m.yes, m.no, m.variants,
       (m.hour AT TIME ZONE 'UTC')::date AS day
  FROM moved_usage m JOIN projects_flag f ON f.name = m.flag JOIN projects_application a ON a.name = m.application
"""
_USED = """
INSERT INTO projects_flagusage AS known (application_id, flag_id, environment, last_used_at)
SELECT application_id, flag_id, environment, max(hour) FROM moved_uses GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
ON CONFLICT (application_id, flag_id, environment) DO UPDATE SET last_used_at = excluded.last_used_at
 WHERE excluded.last_used_at > known.last_used_at
"""
_LATEST = """
INSERT INTO projects_usagehour AS known (flag_id, environment, hour, application_id, yes, no, variants)
SELECT flag_id, environment, hour, application_id, yes, no, variants
  FROM moved_uses WHERE hour >= %(kept)s ORDER BY 1, 2, 3, 4
ON CONFLICT (flag_id, environment, hour, application_id) DO UPDATE SET
    yes = greatest(known.yes, excluded.yes), no = greatest(known.no, excluded.no), variants = excluded.variants
 WHERE excluded.yes > known.yes OR excluded.no > known.no
"""
_EARLIER = """
WITH early AS (
    SELECT * FROM moved_uses WHERE hour < %(kept)s
), named AS (
    SELECT flag_id, environment, day, key, sum(value::bigint) AS number
      FROM early, jsonb_each_text(variants) GROUP BY 1, 2, 3, 4
), objects AS (
    SELECT flag_id, environment, day, jsonb_object_agg(key, number) AS variants FROM named GROUP BY 1, 2, 3
), summed AS (
    SELECT flag_id, environment, day, sum(yes) AS yes, sum(no) AS no FROM early GROUP BY 1, 2, 3
)
INSERT INTO projects_usageday (flag_id, environment, day, yes, no, variants)
SELECT flag_id, environment, day, yes, no, coalesce(variants, '{}')
  FROM summed LEFT JOIN objects USING (flag_id, environment, day) ORDER BY 1, 2, 3
ON CONFLICT (flag_id, environment, day) DO NOTHING
"""
_REFRESH = (
    "SELECT projects_refresh_applications(ARRAY(SELECT DISTINCT application_id FROM moved_uses), '-infinity')"
)


def _move_usage(database: SourceDatabase, names: Collection[str]) -> Lines:
    counts = ("feature_name", "app_name", "environment", "yes", "no")
    if not database.has("client_metrics_env", *counts, "timestamp"):
        return
    by_day = database.has("client_metrics_env_daily", *counts, "date") and database.has(
        "client_metrics_env_variants_daily", "variant", "count"
    )
    now = timezone.now()
    query = _HOURS.format(without=_WITHOUT_DAYS if by_day else "") + (_DAYS.format() if by_day else "")
    rows = database.stream(query, {"since": now - USAGE_MOVED, "now": now})
    columns = "flag text, environment text, application text, hour timestamptz, yes bigint, no bigint, variants jsonb"
    _fill("moved_usage", columns, (row for row in rows if row[0] in names))
    kept = (now - HOURS_KEPT).replace(minute=0, second=0, microsecond=0)
    execute(_APPLICATIONS)
    execute(_USES)
    used = execute(_USED)
    written = execute(_LATEST, {"kept": kept}) + execute(_EARLIER, {"kept": kept})
    if used:
        execute(_REFRESH)
    if used or written:
        yield Line(Kind.CREATE, "usage", f"{written:,} hours and days of flags, of the last 30 days")


# Audit events ----------------------------------------------------------------------------------------------


def _move_events(database: SourceDatabase, source: str) -> Lines:
    known = SourceEvent.objects.filter(source=source).order_by("-event_id").values_list("event_id", flat=True)
    since = (known.first() or 0) - MARGIN
    query = """SELECT id, created_at, type, created_by, project, environment, feature_name, pre_data, data
                 FROM events WHERE id > %s AND created_at IS NOT NULL"""
    rows = (
        (source, *row[:-2], _format_json(row[-2]), _format_json(row[-1]))
        for row in database.stream(query, [since])
    )
    columns = """source text, event_id bigint, created_at timestamptz, type text, created_by text, project text,
                 environment text, feature text, before jsonb, after jsonb"""
    _fill("moved_events", columns, rows)
    yield from _write(
        "audit events, kept as the history of the source",
        """
        INSERT INTO importer_sourceevent (
               source, event_id, created_at, type, created_by, project, environment, feature, before, after)
        SELECT source, event_id, created_at, type, coalesce(created_by, ''), project, environment, feature, before,
               after
          FROM moved_events ORDER BY event_id
        ON CONFLICT (source, event_id) DO NOTHING
        """,
    )


def _format_json(document: Any) -> str | None:
    """Text that jsonb accepts, without NUL and lone surrogates."""
    if document is None:
        return None
    text = json.dumps(document, ensure_ascii=False).encode(errors="replace").decode()
    return NUL.sub(r"\1�", text)


# Statements ------------------------------------------------------------------------------------------------


def _fill(table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
    """A temporary table with these rows, until the end of the transaction."""
    names = ", ".join(column.split()[0] for column in columns.split(","))
    with connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute(f"CREATE TEMPORARY TABLE {table} ({columns}) ON COMMIT DROP")
        with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(f"ANALYZE {table}")


def _write(what: str, statement: str) -> Lines:
    if written := execute(statement):
        yield Line(Kind.CREATE, what, f"{written:,}")
