"""Dependencies of a plan: every parent there, active, in the project, and without parents itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from django.db import connection

from groups.access import Caller
from importer.plan.entries import Entry
from importer.plan.issues import Finding, Kind
from importer.plan.stored import StoredFlag
from projects.flags.dependency_rules import FlagPlace, Wish, dependency_problems

if TYPE_CHECKING:
    from importer.plan.build import Plan

_PRESENT = """
SELECT c.name, p.name
  FROM projects_dependency d JOIN projects_flag c ON c.id = d.flag_id JOIN projects_flag p ON p.id = d.parent_id
 WHERE c.project_id = %s AND c.archived_at IS NULL
"""


def present_dependencies(project: str) -> list[tuple[str, str]]:
    """The (child, parent) pairs of the project's active children."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT, [project])
        return cursor.fetchall()


def dependency_findings(
    plan: Plan, entries: Mapping[str, Entry], stored: Mapping[str, StoredFlag], caller: Caller
) -> Iterator[Finding]:
    """At most one statement, and none where no dependency is at stake."""
    said = {name: entry for name, entry in entries.items() if entry.parents is not None}
    archived = [flag for flag in plan.flags.values() if flag.before and flag.after and flag.after["archived"]]
    if plan.target is None or not (any(entry.parents for entry in said.values()) or archived):
        return
    kept = [
        (child, parent) for child, parent in present_dependencies(plan.target.project.id) if child not in said
    ]
    places = dict(_places(plan, stored, caller))
    wishes = [
        Wish(entry.name, parent["feature"], f"{path}.feature")
        for entry in said.values()
        for path, parent in entry.parents or ()
    ]
    children = {wish.path: wish for wish in wishes}
    for problem in dependency_problems(wishes, project=plan.target.project.id, flags=places, existing=kept):
        wish = children[problem.path]
        missing = wish.parent not in places
        kind = Kind.DEPENDENCY if missing else Kind.VALUE
        yield Finding(kind, problem.path, problem.message, wish.child, wish.parent if missing else None)
    for child, parent in kept:
        if parent in plan.flags and not _stays_active(plan, parent) and _stays_active(plan, child):
            message = f"{parent} cannot be archived: {child} depends on it"
            yield Finding(Kind.VALUE, f"{plan.flags[parent].path}.archived", message, parent)


def _stays_active(plan: Plan, name: str) -> bool:
    flag = plan.flags.get(name)
    return not (flag and flag.after and flag.after["archived"])


def _places(plan: Plan, stored: Mapping[str, StoredFlag], caller: Caller) -> Iterator[tuple[str, FlagPlace]]:
    """Every flag named, as it will be; those the caller may not read are unknown."""
    assert plan.target is not None
    for name, flag in stored.items():
        if caller.can_read(flag.project):
            yield name, FlagPlace(flag.project, flag.archived)
    for name, planned in plan.flags.items():
        if planned.after is not None:
            yield name, FlagPlace(plan.target.project.id, planned.after["archived"])
