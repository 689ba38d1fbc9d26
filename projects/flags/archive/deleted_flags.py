"""Builds the documents of deleted flags for audit events, entirely in SQL.

A project may have ten thousand archived flags. Copying their documents from table to table in one statement
keeps memory use low and avoids round trips.
"""

from typing import Any

from django.db.models import QuerySet

from projects.models import Flag
from projects.strategies.fields import FIELDS

_DOCUMENTS = """
WITH gone AS MATERIALIZED (SELECT f.* FROM projects_flag f WHERE f.id IN ({flags})),
strategies AS (
    SELECT s.flag_id, s.environment_id, json_agg(json_build_object(
               'id', s.id, {strategy},
               'segments', coalesce(l.segments, '[]')) ORDER BY s.sort_order, s.id) AS listed
      FROM projects_strategy s
      JOIN gone ON gone.id = s.flag_id
      LEFT JOIN (SELECT l.strategy_id, json_agg(l.segment_id ORDER BY l.id) AS segments
                   FROM projects_strategysegment l
                   JOIN projects_strategy s ON s.id = l.strategy_id JOIN gone ON gone.id = s.flag_id
                  GROUP BY 1) AS l ON l.strategy_id = s.id
     GROUP BY 1, 2),
environments AS (
    SELECT flag_id, json_agg(json_build_object(
               'name', environment_id, 'enabled', coalesce(e.enabled, false),
               'variants', coalesce(e.variants, '[]'::jsonb), 'strategies', coalesce(s.listed, '[]'))
               ORDER BY environment_id) AS listed
      FROM (SELECT e.* FROM projects_flagenvironment e JOIN gone ON gone.id = e.flag_id) AS e
      FULL JOIN strategies s USING (flag_id, environment_id)
     GROUP BY 1),
tags AS (
    SELECT t.flag_id, json_agg(json_build_object('type', t.tag_type_id, 'value', t.value)
               ORDER BY t.tag_type_id, t.value) AS listed
      FROM projects_flagtag t JOIN gone ON gone.id = t.flag_id GROUP BY 1),
links AS (
    SELECT l.flag_id, json_agg(json_build_object('url', l.url, 'title', l.title)
               ORDER BY l.created_at, l.id) AS listed
      FROM projects_flaglink l JOIN gone ON gone.id = l.flag_id GROUP BY 1),
parents AS (
    SELECT d.flag_id, json_agg(json_build_object(
               'feature', p.name, 'enabled', d.enabled, 'variants', d.variants) ORDER BY d.id) AS listed
      FROM projects_dependency d JOIN gone ON gone.id = d.flag_id JOIN projects_flag p ON p.id = d.parent_id
     GROUP BY 1),
children AS (
    SELECT d.parent_id AS flag_id, json_object_agg(c.name, (
               SELECT json_agg(json_build_object('feature', p.name, 'enabled', a.enabled, 'variants', a.variants)
                               ORDER BY a.id)
                 FROM projects_dependency a JOIN projects_flag p ON p.id = a.parent_id
                WHERE a.flag_id = c.id)) AS listed
      FROM projects_dependency d JOIN gone ON gone.id = d.parent_id JOIN projects_flag c ON c.id = d.flag_id
     GROUP BY 1)
SELECT gone.project_id, gone.name, json_build_object(
           'name', gone.name, 'description', gone.description, 'type', gone.type, 'project', gone.project_id,
           'stale', gone.stale, 'impressionData', gone.impression_data, 'archived', gone.archived_at IS NOT NULL,
           'createdAt', {created_at}, 'archivedAt', {archived_at},
           'environments', coalesce(environments.listed, '[]'), 'tags', coalesce(tags.listed, '[]'),
           'links', coalesce(links.listed, '[]'), 'dependencies', coalesce(parents.listed, '[]'))::jsonb,
       jsonb_build_object('children', children.listed)
  FROM gone
  LEFT JOIN environments ON environments.flag_id = gone.id
  LEFT JOIN tags ON tags.flag_id = gone.id
  LEFT JOIN links ON links.flag_id = gone.id
  LEFT JOIN parents ON parents.flag_id = gone.id
  LEFT JOIN children ON children.flag_id = gone.id
 ORDER BY gone.name COLLATE "C"
"""
# Same format as flagadmin.core.http.responses.iso.
_ISO = (
    "regexp_replace(to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), '000$', '') || 'Z'"
)


def select_removed_flags(flags: QuerySet[Flag]) -> tuple[str, list[Any]]:
    """A SELECT of (project, flag, document, all parents of each child) for these flags by name, and its parameters."""
    inner, params = flags.order_by().values("pk").query.sql_with_params()
    select = _DOCUMENTS.format(
        flags=inner,
        strategy=", ".join(f"'{field.member}', s.{field.column}" for field in FIELDS),
        created_at=_ISO.format(column="gone.created_at"),
        archived_at=_ISO.format(column="gone.archived_at"),
    )
    return select, list(params)
