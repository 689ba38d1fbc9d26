"""Validates dependencies between flags: which flag may depend on which.

A list of requested dependencies is checked as a whole, so that together they cannot form a chain or a cycle.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flagadmin.core.errors import Problem
from playground.engine.definitions import DependencyDefinition


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
