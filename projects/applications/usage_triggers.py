"""Database triggers that update projects' applications lists when usage changes.

``projects_refresh_applications(ids, since)`` rebuilds the rows of these applications, counting instances seen
at or after ``since``. Reports call it for new applications, instances or usage, and triggers when a flag is
moved or deleted by any statement. The triggers count all instances; a page view rebuilds rows with expired
instances.

All code that writes usage locks tables in the same order, so that reports and deletions cannot deadlock:
flags, last seen, applications, instances, usage, hours, days, applications lists,
unknown flags. Rows are locked in key order.
"""

import pgtrigger

REFRESH_SQL = r"""
CREATE OR REPLACE FUNCTION projects_refresh_applications(ids bigint[], since timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- One at a time for an application, so that the last to write has seen what all others wrote.
    PERFORM 1 FROM projects_application WHERE id = ANY(ids) ORDER BY id FOR NO KEY UPDATE;
    INSERT INTO projects_projectapplication AS line (
        project_id, application_id, name, search, environments, sdks,
        environment_count, instance_count, sdk_count, last_seen_at, oldest_seen_at)
    WITH places AS (
        SELECT f.project_id, u.application_id, u.environment, max(u.last_used_at) AS used_at
          FROM projects_flagusage u JOIN projects_flag f ON f.id = u.flag_id
         WHERE u.application_id = ANY(ids) GROUP BY 1, 2, 3
    ), used AS (
        SELECT project_id, application_id, max(used_at) AS used_at,
               array_agg(environment ORDER BY environment COLLATE "C") AS environments
          FROM places GROUP BY 1, 2
    ), running AS (
        SELECT p.project_id, p.application_id, max(i.seen_at) AS seen_at,
               min(i.seen_at) FILTER (WHERE i.seen_at >= since) AS oldest_seen_at,
               count(DISTINCT i.instance_id) FILTER (WHERE i.seen_at >= since) AS instances,
               array_agg(DISTINCT i.sdk_version) FILTER (WHERE i.seen_at >= since AND i.sdk_version <> '') AS sdks,
               count(DISTINCT split_part(i.sdk_version, ':', 1))
                   FILTER (WHERE i.seen_at >= since AND i.sdk_version <> '') AS sdk_count,
               string_agg(DISTINCT i.folded_sdk, E'\x1f')
                   FILTER (WHERE i.seen_at >= since AND i.sdk_version <> '') AS folded_sdks
          FROM places p JOIN projects_applicationinstance i
            ON i.application_id = p.application_id AND i.environment = p.environment
         GROUP BY 1, 2
    )
    SELECT u.project_id, u.application_id, a.name,
           concat_ws(E'\x1f', a.folded_name, lower(array_to_string(u.environments, E'\x1f')), r.folded_sdks),
           u.environments, coalesce(r.sdks, '{}'), cardinality(u.environments),
           coalesce(r.instances, 0), coalesce(r.sdk_count, 0), greatest(u.used_at, r.seen_at), r.oldest_seen_at
      FROM used u JOIN projects_application a ON a.id = u.application_id
      LEFT JOIN running r ON r.project_id = u.project_id AND r.application_id = u.application_id
     ORDER BY u.application_id, u.project_id
    ON CONFLICT (project_id, application_id) DO UPDATE SET
        search = excluded.search, environments = excluded.environments, sdks = excluded.sdks,
        environment_count = excluded.environment_count, instance_count = excluded.instance_count,
        sdk_count = excluded.sdk_count, oldest_seen_at = excluded.oldest_seen_at,
        last_seen_at = greatest(line.last_seen_at, excluded.last_seen_at);
    DELETE FROM projects_projectapplication line
     WHERE line.application_id = ANY(ids) AND NOT EXISTS (
           SELECT FROM projects_flagusage u JOIN projects_flag f ON f.id = u.flag_id
            WHERE u.application_id = line.application_id AND f.project_id = line.project_id);
END $$;
"""
UNREFRESH_SQL = "DROP FUNCTION projects_refresh_applications(bigint[], timestamptz);"

# A low fill factor lets frequent updates of unindexed columns stay on their page (HOT updates).
ROOM_SQL = """
ALTER TABLE projects_applicationinstance SET (fillfactor = 80);
ALTER TABLE projects_flagusage SET (fillfactor = 80);
ALTER TABLE projects_usagehour SET (fillfactor = 80);
ALTER TABLE projects_projectapplication SET (fillfactor = 80);
ALTER TABLE projects_flaglastseen SET (fillfactor = 80);
"""

_MOVED = """
used := ARRAY(SELECT DISTINCT u.application_id
                FROM new_rows n JOIN old_rows o ON o.id = n.id AND o.project_id <> n.project_id
                JOIN projects_flagusage u ON u.flag_id = n.id);
IF cardinality(used) > 0 THEN
    PERFORM projects_refresh_applications(used, '-infinity');
END IF;
RETURN NULL;
"""
_DELETED = """
used := ARRAY(SELECT DISTINCT u.application_id FROM projects_flagusage u JOIN old_rows o ON o.id = u.flag_id);
IF cardinality(used) > 0 THEN
    PERFORM 1 FROM projects_application WHERE id = ANY(used) ORDER BY id FOR NO KEY UPDATE;
    PERFORM 1 FROM projects_flagusage WHERE flag_id IN (SELECT id FROM old_rows)
      ORDER BY application_id, flag_id, environment FOR UPDATE;
    DELETE FROM projects_flagusage WHERE flag_id IN (SELECT id FROM old_rows);
    DELETE FROM projects_usagehour WHERE flag_id IN (SELECT id FROM old_rows);
    DELETE FROM projects_usageday WHERE flag_id IN (SELECT id FROM old_rows);
    PERFORM projects_refresh_applications(used, '-infinity');
END IF;
RETURN NULL;
"""
_ENDED = """
DELETE FROM projects_flaglastseen WHERE environment IN (SELECT name FROM old_rows);
used := ARRAY(SELECT DISTINCT application_id FROM projects_flagusage
               WHERE environment IN (SELECT name FROM old_rows));
PERFORM 1 FROM projects_application WHERE id = ANY(used) ORDER BY id FOR NO KEY UPDATE;
DELETE FROM projects_applicationinstance WHERE environment IN (SELECT name FROM old_rows);
DELETE FROM projects_flagusage WHERE environment IN (SELECT name FROM old_rows);
DELETE FROM projects_usagehour WHERE environment IN (SELECT name FROM old_rows);
DELETE FROM projects_usageday WHERE environment IN (SELECT name FROM old_rows);
PERFORM projects_refresh_applications(used, '-infinity');
RETURN NULL;
"""


def environment_usage_triggers() -> list[pgtrigger.Trigger]:
    """Deleting an environment deletes its usage."""
    return [_trigger("usage_ends", pgtrigger.Delete, pgtrigger.Referencing(old="old_rows"), _ENDED)]


def usage_triggers() -> list[pgtrigger.Trigger]:
    """Usage moves with a flag to another project, and is deleted with it."""
    return [
        _trigger(
            "usage_moves", pgtrigger.Update, pgtrigger.Referencing(old="old_rows", new="new_rows"), _MOVED
        ),
        _trigger("usage_goes", pgtrigger.Delete, pgtrigger.Referencing(old="old_rows"), _DELETED),
    ]


def _trigger(
    name: str, operation: pgtrigger.Operation, referencing: pgtrigger.Referencing, body: str
) -> pgtrigger.Trigger:
    return pgtrigger.Trigger(
        name=name,
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=referencing,
        declare=[("used", "bigint[]")],
        func=body,
    )
