"""Adds and removes the parent flags that a flag depends on, and lists possible parents.

Validates dependencies between flags: which flag may depend on which.

A list of requested dependencies is checked as a whole, so that together they cannot form a chain or a cycle.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from flagadmin.core.audit.record import Event, EventType, record, record_all
from flagadmin.core.change_checks import KnownChange
from flagadmin.core.change_checks.comments import foresee
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import NotFound, Problem, check_problems
from groups.access import Caller, Permission
from playground.engine.definitions import DependencyDefinition
from projects.access import access_flag_for_update
from projects.models import Dependency, Flag, FlagEnvironment, Project, Strategy


@transactional
def add_dependency(project_id: str, name: str, values: Mapping[str, Any], *, caller: Caller) -> None:
    """Makes the flag depend on the parent ``feature``, or updates an existing dependency.

    Raises NotFound, NoAccess, ValidationError.
    """
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE_DEPENDENCY)
    document = make_dependency(values)
    # Every change to a flag takes the project lock, which keeps the parent unchanged until commit.
    parent = Flag.objects.readable_by(caller).filter(name=document["feature"]).first()
    _check(flag, parent, document["feature"])
    assert parent is not None
    before = {row.parent.name: _make_document(row) for row in _read_rows(flag)}
    event = Event.of_flag(
        EventType.FEATURE_DEPENDENCY_ADDED,
        flag,
        before=before.get(parent.name),
        after=document,
        earlier={"dependencies": [*before.values()]},
    )
    after = before | {parent.name: document}
    foresee([event], KnownChange({(name, ""): {"dependencies": [*after.values()]}}))
    Dependency.objects.update_or_create(
        flag=flag,
        parent=parent,
        defaults={"enabled": document["enabled"], "variants": document["variants"]},
    )
    record(event, actor=caller)


def check_parent(flag: Flag, values: Mapping[str, Any], *, caller: Caller) -> DependencyDefinition:
    """The dependency as it would be stored. Raises ValidationError."""
    document = make_dependency(values)
    parent = Flag.objects.readable_by(caller).filter(name=document["feature"]).first()
    _check(flag, parent, document["feature"])
    return document


def parents_problems(
    flag: Flag, parents: Sequence[str], among: QuerySet[Flag], path: str
) -> Iterator[Problem]:
    """Yields the problems with these as the flag's full list of parents. ``among`` are the flags that the
    caller may read.
    """
    names = {flag.name, *parents}
    rows = among.filter(name__in=names).values_list("name", "project_id", "archived_at")
    states = {name: FlagState(project, archived_at is not None) for name, project, archived_at in rows}
    near = Dependency.objects.filter(Q(flag__name__in=names) | Q(parent__name__in=names))
    existing = near.exclude(flag=flag).values_list("flag__name", "parent__name")
    proposed = [
        ProposedDependency(flag.name, parent, f"{path}[{index}]") for index, parent in enumerate(parents)
    ]
    yield from dependency_problems(proposed, project=flag.project_id, flags=states, existing=existing)


def _check(flag: Flag, parent: Flag | None, parent_name: str) -> None:
    flags = {flag.name: FlagState(flag.project_id)}
    names = {flag.name}
    if parent is not None:
        flags[parent.name] = FlagState(parent.project_id, parent.is_archived)
        names.add(parent.name)
    near = Dependency.objects.filter(Q(flag__name__in=names) | Q(parent__name__in=names))
    existing = near.exclude(flag=flag, parent=parent).values_list("flag__name", "parent__name")
    dependency = ProposedDependency(child=flag.name, parent=parent_name, path="feature")
    check_problems(dependency_problems([dependency], project=flag.project_id, flags=flags, existing=existing))


@transactional
def remove_dependency(project_id: str, name: str, parent: str, *, caller: Caller) -> None:
    """Removes one parent. Raises NoAccess, and NotFound also if the flag does not depend on ``parent``."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE_DEPENDENCY)
    rows = _read_rows(flag)
    removed = [row for row in rows if row.parent.name == parent]
    if not removed:
        raise no_parent(flag, parent)
    _remove(flag, removed, rows, caller=caller)


def no_parent(flag: Flag, parent: str) -> NotFound:
    return NotFound(f"{flag.name} does not depend on {parent}.")


@transactional
def clear_dependencies(project_id: str, name: str, *, caller: Caller) -> None:
    """Removes all parents of the flag. Raises NotFound, NoAccess."""
    flag = access_flag_for_update(caller, project_id, name, Permission.UPDATE_FEATURE_DEPENDENCY)
    rows = _read_rows(flag)
    _remove(flag, rows, rows, caller=caller)


def list_possible_parents(flag: Flag, *, limit: int | None = None) -> list[str]:
    """Names of the active flags in the same project that the flag could depend on; the first ``limit``."""
    if Dependency.objects.filter(parent=flag).exists():
        return []
    others = Flag.objects.active().filter(project=flag.project_id, parents=None).exclude(pk=flag.pk)
    return sorted(others.order_by("name").values_list("name", flat=True)[:limit])


def uses_dependencies(project: Project) -> bool:
    """Whether any flag of the project depends on another flag."""
    return Dependency.objects.filter(flag__project=project).exists()


def list_parent_variants(project: Project, name: str) -> list[str]:
    """Sorted names of the variants that a dependency on this flag can require, in any environment.

    They are the flag's and its strategies'; none if there is no such active flag.
    """
    flags = Flag.objects.active().filter(project=project, name=name)
    lists = [
        *FlagEnvironment.objects.filter(flag__in=flags).values_list("variants", flat=True),
        *Strategy.objects.filter(flag__in=flags).values_list("variants", flat=True),
    ]
    return sorted({variant["name"] for variants in lists for variant in variants})


def _read_rows(flag: Flag) -> list[Dependency]:
    return list(Dependency.objects.filter(flag=flag).select_related("parent").order_by("id"))


def _remove(flag: Flag, rows: list[Dependency], all_rows: list[Dependency], *, caller: Caller) -> None:
    earlier = {"dependencies": [_make_document(row) for row in all_rows]}
    events = [
        Event.of_flag(EventType.FEATURE_DEPENDENCY_REMOVED, flag, before=_make_document(row), earlier=earlier)
        for row in rows
    ]
    left = [_make_document(row) for row in all_rows if row not in rows]
    foresee(events, KnownChange({(flag.name, ""): {"dependencies": left}}))
    Dependency.objects.filter(pk__in=[row.pk for row in rows]).delete()
    record_all(events, actor=caller)


def _make_document(row: Dependency) -> dict[str, Any]:
    return {"feature": row.parent.name, "enabled": row.enabled, "variants": row.variants}


@dataclass(frozen=True, slots=True)
class FlagState:
    """The project of a flag, and whether it is archived."""

    project: str
    archived: bool = False


@dataclass(frozen=True, slots=True)
class ProposedDependency:
    """A requested dependency of ``child`` on ``parent``; ``path`` is its position in the request."""

    child: str
    parent: str
    path: str


def make_dependency(values: Mapping[str, Any]) -> DependencyDefinition:
    """``feature enabled variants`` as stored: enabled by default; variants only if the parent must be on."""
    enabled = values.get("enabled") is not False
    return {
        "feature": values["feature"],
        "enabled": enabled,
        "variants": list(values.get("variants") or []) if enabled else [],
    }


def dependency_problems(
    proposed: Sequence[ProposedDependency],
    *,
    project: str,
    flags: Mapping[str, FlagState],
    existing: Iterable[tuple[str, str]] = (),
) -> Iterator[Problem]:
    """Problems with requested dependencies in ``project``.

    ``flags`` holds the named flags that the caller can see, in their future state; ``existing`` holds the
    (child, parent) pairs that remain. A parent must be an active flag of the same project that has no parent
    itself: chains and cycles are rejected, whether stored or requested. A child may have several parents.
    """
    parents: dict[str, set[str]] = defaultdict(set)
    children: dict[str, set[str]] = defaultdict(set)
    for child, parent in existing:
        parents[child].add(parent)
        children[parent].add(child)
    repeated = set()
    for dependency in proposed:
        if dependency.parent in parents[dependency.child]:
            repeated.add(id(dependency))
        parents[dependency.child].add(dependency.parent)
        children[dependency.parent].add(dependency.child)
    for dependency in proposed:
        message = _find_parent_problem(dependency, project, flags) or _find_chain_problem(
            dependency, parents, children
        )
        if message is None and id(dependency) in repeated:
            message = f"{dependency.child} already depends on {dependency.parent}"
        if message:
            yield Problem(dependency.path, message)


def _find_parent_problem(
    dependency: ProposedDependency, project: str, flags: Mapping[str, FlagState]
) -> str | None:
    if dependency.child == dependency.parent:
        return f"{dependency.child} cannot depend on itself"
    parent = flags.get(dependency.parent)
    if parent is None:
        return f"flag {dependency.parent} not found"
    if parent.project != project:
        return f"{dependency.parent} is in project {parent.project}; a parent must be in the same project, {project}"
    if parent.archived:
        return f"{dependency.parent} is archived; a parent must be active"
    return None


def _find_chain_problem(
    dependency: ProposedDependency, parents: Mapping[str, set[str]], children: Mapping[str, set[str]]
) -> str | None:
    if grandparents := parents.get(dependency.parent):
        if dependency.child in grandparents:
            return f"{dependency.parent} depends on {dependency.child}; flags cannot depend on each other"
        return f"{dependency.parent} itself depends on {min(grandparents)}; a parent cannot have a parent"
    if grandchildren := children.get(dependency.child):
        return f"{min(grandchildren)} depends on {dependency.child}; a parent cannot have a parent"
    return None
