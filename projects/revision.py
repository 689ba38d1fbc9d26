"""A revision number for each project, increased by database triggers when flags would evaluate differently.

Every statement that changes a column used in evaluation gives the affected projects a new number from one
sequence, in the same transaction (``projects_touch``, migration 0037). Caches and ETags are keyed by (project,
revision) pairs. Each number is stored with the names of the flags that it changed, so that readers of an earlier
revision read only those again.

PostgreSQL allows transition tables only for triggers on a single event without a column list. Each table
therefore has three triggers, and the update trigger compares the columns to ignore updates that change none
of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pgtrigger
from django.db import DEFAULT_DB_ALIAS, connection, connections

from flagadmin.core.db.statements import FEW, fetch_rows
from flagadmin.core.db.transactions import AUDITED

OF_FLAG = "SELECT f.project_id, f.name FROM {rows} r JOIN projects_flag f ON f.id = r.flag_id"
OF_STRATEGY = (
    "SELECT f.project_id, f.name FROM {rows} r JOIN projects_strategy s ON s.id = r.strategy_id "
    "JOIN projects_flag f ON f.id = s.flag_id"
)
OF_SEGMENT = (
    "SELECT f.project_id, f.name FROM {rows} r JOIN projects_strategysegment l ON l.segment_id = r.id "
    "JOIN projects_strategy s ON s.id = l.strategy_id JOIN projects_flag f ON f.id = s.flag_id"
)
OF_PROJECT = "SELECT r.project_id, r.name FROM {rows} r"
OF_SELF = "SELECT r.id, NULL FROM {rows} r"


def make_revision_triggers(columns: Sequence[str], flags_of: str) -> list[pgtrigger.Trigger]:
    """The three triggers of a table.

    ``flags_of`` is SQL that selects the project id and the name of each flag that the rows in ``{rows}`` belong to.
    """
    listed = ", ".join(columns)
    return [
        _make_trigger(
            "insert",
            pgtrigger.Insert,
            pgtrigger.Referencing(new="new_rows"),
            flags_of.format(rows="new_rows"),
        ),
        _make_trigger(
            "delete",
            pgtrigger.Delete,
            pgtrigger.Referencing(old="old_rows"),
            flags_of.format(rows="old_rows"),
        ),
        _make_trigger(
            "update",
            pgtrigger.Update,
            pgtrigger.Referencing(old="old_rows", new="new_rows"),
            flags_of.format(
                rows=(
                    f"((SELECT {listed} FROM new_rows EXCEPT SELECT {listed} FROM old_rows)"  # noqa: S608 - our names
                    f" UNION ALL (SELECT {listed} FROM old_rows EXCEPT SELECT {listed} FROM new_rows))"
                )
            ),
        ),
    ]


def _make_trigger(
    name: str, operation: pgtrigger.Operation, referencing: pgtrigger.Referencing, flags: str
) -> pgtrigger.Trigger:
    return pgtrigger.Trigger(
        name=f"revision_{name}",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=referencing,
        func="PERFORM projects_touch(array_agg(project), array_agg(flag))"
        f" FROM ({flags}) AS f (project, flag); RETURN NULL;",
    )


def make_project_triggers() -> list[pgtrigger.Trigger]:
    """Triggers that create a project's revision with the project and delete it with the project."""
    forget = pgtrigger.Trigger(
        name="revision_forget",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=pgtrigger.Delete,
        referencing=pgtrigger.Referencing(old="old_rows"),
        func="DELETE FROM projects_projectrevision WHERE project_id IN (SELECT id FROM old_rows); "
        "DELETE FROM projects_changedflags WHERE project_id IN (SELECT id FROM old_rows); RETURN NULL;",
    )
    return [make_revision_triggers(["id"], OF_SELF)[0], forget]


def make_outside_triggers() -> list[pgtrigger.Trigger]:
    """A trigger that notes, at the end of a transaction, that it changed a project and recorded no audit event."""
    changed = "coalesce(NEW.project_id, OLD.project_id)"
    return [
        pgtrigger.Trigger(
            name="outside",
            level=pgtrigger.Row,
            when=pgtrigger.After,
            operation=pgtrigger.Update | pgtrigger.Delete,
            timing=pgtrigger.Deferred,
            # Once per transaction: for the project's number at its end.
            func=f"""
IF coalesce(current_setting('{AUDITED}', true), '') <> 'on' THEN
    IF NOT EXISTS (SELECT FROM projects_projectrevision r
                    WHERE r.project_id = {changed} AND r.revision <> NEW.revision) THEN
        INSERT INTO projects_outsidechange (project_id, noticed_at) VALUES ({changed}, clock_timestamp());
    END IF;
END IF;
RETURN NULL;
""",  # noqa: S608 - names of our own
        )
    ]


_REVISIONS = "SELECT project_id, revision FROM projects_projectrevision"
_THESE = " WHERE project_id = ANY(%s)"
_ENVIRONMENTS = " UNION ALL SELECT name, NULL FROM projects_environment"


def read_revisions(projects: Iterable[str] | None = None) -> dict[str, int]:
    """Revisions by project id; None means all projects. Unknown ids are left out. One indexed read."""
    return dict(sorted(_read(projects)))


def read_revisions_and_environments(projects: Iterable[str] | None) -> tuple[dict[str, int], set[str]]:
    """Revisions by project id, and the names of all environments.

    One statement, as the playground needs both.
    """
    rows = _read(projects, _ENVIRONMENTS)
    known = sorted((project, revision) for project, revision in rows if revision is not None)
    return dict(known), {name for name, revision in rows if revision is None}


def _read(projects: Iterable[str] | None, more: str = "") -> list[tuple[str, Any]]:
    if projects is None:
        return fetch_rows(_REVISIONS + more, prepared=True)
    listed = list(projects)
    return fetch_rows(_REVISIONS + _THESE + more, [listed], prepared=len(listed) <= FEW)


# The flags of each revision, and their children, which contain the names of their parents.
_CHANGED = """
WITH later AS (
    SELECT c.project_id, c.revision, c.names
      FROM unnest(%(projects)s::text[], %(known)s::bigint[]) AS k (project, revision)
      JOIN projects_changedflags c ON c.project_id = k.project AND c.revision >= k.revision
)
SELECT project_id, revision, names || ARRAY(
       SELECT child.name FROM projects_flag parent JOIN projects_dependency d ON d.parent_id = parent.id
         JOIN projects_flag child ON child.id = d.flag_id WHERE parent.name = ANY(names))
  FROM later ORDER BY project_id, revision
"""
MAX_CHANGED = 1_000
"""Changed flags of a project: for more, reading all of its flags is not much slower."""
KEPT = 10_000
"""Revisions of all projects whose changed flags are kept."""


def read_changed_flags(
    known: Mapping[str, int], current: Mapping[str, int], *, using: str = DEFAULT_DB_ALIAS
) -> dict[str, set[str]]:
    """The names of the flags whose definitions may have changed between two revisions of each project.

    Includes flags that left the project. Omits projects whose changes are not known exactly: they are no longer
    stored, or too many. ``current`` was read in the same transaction. One statement.
    """
    projects = sorted(project for project in known if project in current)
    if not projects:
        return {}
    with connections[using].cursor() as cursor:
        cursor.execute(_CHANGED, {"projects": projects, "known": [known[project] for project in projects]})
        rows = cursor.fetchall()
    changed: dict[str, set[str]] = {}
    for project, its_rows in groupby(rows, key=itemgetter(0)):
        revisions = [(revision, names) for _, revision, names in its_rows]
        # Revisions of a project are committed in their order. While that of the reader is stored, all later ones are.
        is_complete = revisions[0][0] == known[project] and revisions[-1][0] == current[project]
        if is_complete and all(names is not None for _, names in revisions[1:]):
            names = {name for _, its_names in revisions[1:] for name in its_names}
            if len(names) <= MAX_CHANGED:
                changed[project] = names
    return changed


def forget_changed_flags() -> None:
    """Deletes the names of all but the last ``KEPT`` revisions."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM projects_changedflags"
            " WHERE revision <= (SELECT max(revision) FROM projects_changedflags) - %s",
            [KEPT],
        )
