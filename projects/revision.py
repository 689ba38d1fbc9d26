"""A revision number for each project, increased by database triggers when flags would evaluate differently.

Every statement that changes a column used in evaluation gives the affected projects a new number from one
sequence, in the same transaction (``projects_touch``, migration 0002). Caches and ETags are keyed by (project,
revision) pairs.

PostgreSQL allows transition tables only for triggers on a single event without a column list. Each table
therefore has three triggers, and the update trigger compares the columns to ignore updates that change none
of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pgtrigger
from django.db import connection

from flagadmin.core.db.transactions import AUDITED

OF_FLAG = "SELECT f.project_id FROM {rows} r JOIN projects_flag f ON f.id = r.flag_id"
OF_STRATEGY = (
    "SELECT f.project_id FROM {rows} r JOIN projects_strategy s ON s.id = r.strategy_id "
    "JOIN projects_flag f ON f.id = s.flag_id"
)
OF_SEGMENT = (
    "SELECT f.project_id FROM {rows} r JOIN projects_strategysegment l ON l.segment_id = r.id "
    "JOIN projects_strategy s ON s.id = l.strategy_id JOIN projects_flag f ON f.id = s.flag_id"
)
OF_PROJECT = "SELECT r.project_id FROM {rows} r"
OF_SELF = "SELECT r.id AS project_id FROM {rows} r"


def make_revision_triggers(columns: Sequence[str], projects_of: str) -> list[pgtrigger.Trigger]:
    """The three triggers of a table.

    ``projects_of`` is SQL that selects the project ids of the rows in ``{rows}``.
    """
    listed = ", ".join(columns)
    return [
        _make_trigger(
            "insert",
            pgtrigger.Insert,
            pgtrigger.Referencing(new="new_rows"),
            projects_of.format(rows="new_rows"),
        ),
        _make_trigger(
            "delete",
            pgtrigger.Delete,
            pgtrigger.Referencing(old="old_rows"),
            projects_of.format(rows="old_rows"),
        ),
        _make_trigger(
            "update",
            pgtrigger.Update,
            pgtrigger.Referencing(old="old_rows", new="new_rows"),
            projects_of.format(
                rows=(
                    f"((SELECT {listed} FROM new_rows EXCEPT SELECT {listed} FROM old_rows)"  # noqa: S608 - our names
                    f" UNION ALL (SELECT {listed} FROM old_rows EXCEPT SELECT {listed} FROM new_rows))"
                )
            ),
        ),
    ]


def _make_trigger(
    name: str, operation: pgtrigger.Operation, referencing: pgtrigger.Referencing, projects: str
) -> pgtrigger.Trigger:
    return pgtrigger.Trigger(
        name=f"revision_{name}",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=operation,
        referencing=referencing,
        func=f"PERFORM projects_touch(ARRAY({projects})); RETURN NULL;",
    )


def make_project_triggers() -> list[pgtrigger.Trigger]:
    """Triggers that create a project's revision with the project and delete it with the project."""
    forget = pgtrigger.Trigger(
        name="revision_forget",
        level=pgtrigger.Statement,
        when=pgtrigger.After,
        operation=pgtrigger.Delete,
        referencing=pgtrigger.Referencing(old="old_rows"),
        func="DELETE FROM projects_projectrevision WHERE project_id IN (SELECT id FROM old_rows); RETURN NULL;",
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
            # Once for a transaction: for the number that the project has at its end.
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
    with connection.cursor() as cursor:
        if projects is None:
            cursor.execute(_REVISIONS + more)
        else:
            cursor.execute(_REVISIONS + _THESE + more, [list(projects)])
        return cursor.fetchall()
