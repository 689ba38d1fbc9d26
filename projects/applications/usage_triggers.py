"""Database triggers that update projects' applications lists when usage changes.

``projects_refresh_applications(ids, since)`` (migration 0003) rebuilds the rows of these applications, counting
instances seen at or after ``since``. Reports call it for new applications, instances or usage, and triggers when
a flag is moved or deleted by any statement. The triggers count all instances; a page view rebuilds rows with
expired instances.

All code that writes usage locks tables in the same order, so that reports and deletions cannot deadlock:
flags, last seen, applications, instances, usage, hours, days, applications lists,
unknown flags. Rows are locked in key order.
"""

import pgtrigger

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


def make_environment_usage_triggers() -> list[pgtrigger.Trigger]:
    """Deleting an environment deletes its usage."""
    return [_make_trigger("usage_ends", pgtrigger.Delete, pgtrigger.Referencing(old="old_rows"), _ENDED)]


def make_usage_triggers() -> list[pgtrigger.Trigger]:
    """Usage moves with a flag to another project, and is deleted with it."""
    return [
        _make_trigger(
            "usage_moves", pgtrigger.Update, pgtrigger.Referencing(old="old_rows", new="new_rows"), _MOVED
        ),
        _make_trigger("usage_goes", pgtrigger.Delete, pgtrigger.Referencing(old="old_rows"), _DELETED),
    ]


def _make_trigger(
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
