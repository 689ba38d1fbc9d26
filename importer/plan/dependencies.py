"""Checks the dependencies between flags in an import plan."""

from collections.abc import Iterator, Mapping

from flagadmin.core.db.statements import fetch_rows
from groups.access import Caller
from importer.plan.entries import Entry
from importer.plan.import_plan import Plan
from importer.plan.issues import Issue, IssueKind
from importer.plan.stored import StoredFlag
from projects.flags.dependencies.rules import FlagState, ProposedDependency, dependency_problems

_DEPENDENCIES = """
SELECT c.name, p.name
  FROM projects_dependency d JOIN projects_flag c ON c.id = d.flag_id JOIN projects_flag p ON p.id = d.parent_id
 WHERE c.project_id = %s AND c.archived_at IS NULL
"""


def read_dependencies(project: str) -> list[tuple[str, str]]:
    """The dependencies of the project's active flags, as (child, parent) names."""
    return fetch_rows(_DEPENDENCIES, [project])


def find_dependency_issues(
    plan: Plan, entries: Mapping[str, Entry], stored: Mapping[str, StoredFlag], caller: Caller
) -> Iterator[Issue]:
    """Issues with dependencies. Runs one statement, none unless the plan adds a parent or archives a flag."""
    changed = {name: entry for name, entry in entries.items() if entry.parents is not None}
    archived = [flag for flag in plan.flags.values() if flag.before and flag.after and flag.after["archived"]]
    if plan.target is None or not (any(entry.parents for entry in changed.values()) or archived):
        return
    unchanged = [(child, parent) for child, parent in read_dependencies(plan.project) if child not in changed]
    locations = dict(_list_locations(plan, stored, caller))
    proposed = [
        ProposedDependency(entry.name, parent["feature"], f"{path}.feature")
        for entry in changed.values()
        for path, parent in entry.parents or ()
    ]
    children = {dependency.path: dependency for dependency in proposed}
    for problem in dependency_problems(proposed, project=plan.project, flags=locations, existing=unchanged):
        dependency = children[problem.path]
        missing = dependency.parent not in locations
        kind = IssueKind.DEPENDENCY if missing else IssueKind.VALUE
        yield Issue(
            kind, problem.path, problem.message, dependency.child, dependency.parent if missing else None
        )
    for child, parent in unchanged:
        if parent in plan.flags and not _stays_active(plan, parent) and _stays_active(plan, child):
            message = f"{parent} cannot be archived: {child} depends on it"
            yield Issue(IssueKind.VALUE, f"{plan.flags[parent].path}.archived", message, parent)


def _stays_active(plan: Plan, name: str) -> bool:
    flag = plan.flags.get(name)
    return not (flag and flag.after and flag.after["archived"])


def _list_locations(
    plan: Plan, stored: Mapping[str, StoredFlag], caller: Caller
) -> Iterator[tuple[str, FlagState]]:
    """The location of each flag after the import, without flags that the caller may not read."""
    for name, flag in stored.items():
        if caller.can_read(flag.project):
            yield name, FlagState(flag.project, flag.archived)
    for name, planned in plan.flags.items():
        if planned.after is not None:
            yield name, FlagState(plan.project, planned.after["archived"])
