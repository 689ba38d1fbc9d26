"""Checks an import plan: the flags' present locations, dependencies, and permissions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.document import Document
from groups.access import Caller, Permission
from importer.plan.entries import Entries, Entry
from importer.plan.import_plan import FlagPlan, Plan, StoredFlag, read_flags
from importer.plan.references import References
from importer.plan.target import Issue, IssueKind, Target
from projects.flags.dependencies.actions import FlagState, ProposedDependency, dependency_problems
from projects.states import permissions


def is_skipped(entry: Entry, stored: StoredFlag | None) -> bool:
    """Whether the flag is skipped because it is archived.

    An import does not revive flags. Enabling an archived flag or adding links to it is refused.
    """
    if stored is None or not stored.archived or _stays_archived(entry, stored):
        return False
    return entry.links is None and (entry.feature is not None or entry.enabled is None)


def _stays_archived(entry: Entry, stored: StoredFlag) -> bool:
    """Whether the flag is archived in the file too, as in a backup. Its other data is then imported."""
    return bool(stored.document and entry.feature and entry.feature.get("archived"))


def describe_location(stored: StoredFlag | None, target: Target, caller: Caller) -> str:
    if stored is None or stored.project == target.project.id:
        return ""
    return f" in project {stored.project}" if caller.can_read(stored.project) else " in another project"


def find_location_issue(
    entry: Entry, stored: StoredFlag | None, target: Target, caller: Caller
) -> Issue | None:
    """A flag must be active in the target project, or be new and listed in ``features``."""
    name, path = entry.name, f"{entry.path}.name" if entry.feature is not None else entry.path
    if entry.parts is not None and (stored is None or stored.project != target.project.id):
        return Issue(IssueKind.VALUE, path, f"flag {name} not found in project {target.project.id}", name)
    if stored is None and entry.feature is None:
        message = f"flag {name} is neither in project {target.project.id} nor in data.features"
        return Issue(IssueKind.VALUE, path, message, name)
    if stored is not None and stored.project != target.project.id:
        where = describe_location(stored, target, caller).strip()
        return Issue(
            IssueKind.OTHER_PROJECT, path, f"{name} already exists {where}", name, f"{name} ({where})"
        )
    if stored is not None and stored.archived and not _stays_archived(entry, stored):
        return Issue(IssueKind.VALUE, path, f"{name} is archived. Restore it first", name)
    return None


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
    """Issues with dependencies. One statement; none unless the plan adds a parent or archives a flag."""
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


def list_missing_variants(plan: Plan) -> Iterator[str]:
    """Notes on variants that a flag requires of a parent without them. Reads parents that are not planned."""
    required = [
        (flag.name, parent["feature"], parent["variants"])
        for flag in plan.flags.values()
        for parent in (flag.after or {}).get("parents", ())
        if parent["variants"]
    ]
    known = {name: flag.after for name, flag in plan.flags.items() if flag.after}
    others = {parent for _, parent, _ in required} - known.keys()
    for name, stored in read_flags(others, project=plan.project, environment=plan.environment).items():
        if stored.document is not None:
            known[name] = stored.document
    for child, parent, variants in required:
        if document := known.get(parent):
            for variant in sorted(set(variants) - set(_list_variants(document))):
                lacks = f"which has none with this name in {plan.environment}"
                yield f"{child}: it requires variant {variant} of {parent}, {lacks}."


def _list_variants(document: Document) -> Iterator[str]:
    for variants in (document["variants"], *(each["variants"] for each in document["strategies"])):
        yield from (variant["name"] for variant in variants)


def list_needed_permissions(
    flags: Sequence[FlagPlan], entries: Entries, references: References
) -> list[Permission]:
    """The permissions needed to import ``flags`` (all but the skipped ones), in the reference's order."""
    listed = [entries.flags[flag.name] for flag in flags]
    replaces_strategies = any(flag.feature is not None and _has_stored(flag, "strategies") for flag in flags)
    changes_variants = any(
        entry.variants is not None and (entry.variants[1] or _has_stored(flag, "variants"))
        for flag, entry in zip(flags, listed, strict=True)
    )
    needed = {
        Permission.CREATE_CONTEXT_FIELD: bool(references.new_fields),
        Permission.CREATE_FEATURE_STRATEGY: any(entry.strategies for entry in listed)
        or any(entry.enabled and entry.enabled[1] for entry in listed),
        Permission.DELETE_FEATURE_STRATEGY: replaces_strategies,
        Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS: changes_variants,
        Permission.CREATE_FEATURE: any(flag.stored is None for flag in flags),
        Permission.UPDATE_FEATURE: True,
        Permission.CREATE_TAG_TYPE: bool(references.new_tag_types),
        Permission.CREATE_SEGMENT: bool(references.new_segments),
        Permission.DELETE_FEATURE: any(flag.before and flag.becomes_archived for flag in flags),
        Permission.UPDATE_FEATURE_ENVIRONMENT: any(
            _only_turns_off(flag) and not entry.strategies for flag, entry in zip(flags, listed, strict=True)
        ),
        Permission.UPDATE_FEATURE_DEPENDENCY: any(flag.before and flag.differs("parents") for flag in flags),
    }
    return [permission for permission, is_needed in needed.items() if is_needed]


def _only_turns_off(flag: FlagPlan) -> bool:
    """Whether it turns off a flag and keeps its strategies: replacing them needs a permission of its own there."""
    if flag.before is None or flag.after is None or flag.becomes_archived:
        return False
    is_turned_off = flag.before["enabled"] and not flag.after["enabled"]
    return is_turned_off and not (flag.feature is not None and _has_stored(flag, "strategies"))


def change_permissions(
    flags: Iterable[FlagPlan], environment: str, *, switch: bool = True
) -> list[Permission]:
    """The permissions needed for these changes in one environment, each made separately.

    Without ``switch``, turning off a flag needs no permission, as when it loses its last strategy.
    """
    made = [change for flag in flags for change in flag.list_changes(environment)]
    return permissions(change for change in made if switch or change.action != "updateEnabled")


def _has_stored(flag: FlagPlan, part: str) -> bool:
    return bool((flag.before or {}).get(part))


def find_missing_permissions(
    needed: Iterable[Permission], project: str, environment: str, *, caller: Caller
) -> list[Permission]:
    return [p for p in needed if not caller.can(p, project=project, environment=environment)]
