"""Validates dependencies between flags: which flag may depend on which.

A list of requested dependencies is checked as a whole, so that together they cannot form a chain or a cycle.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flagadmin.errors import Problem


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """The project of a flag and whether it is archived."""

    project: str
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """A requested dependency of ``child`` on ``parent``; ``path`` is its position in the request."""

    child: str
    parent: str
    path: str


def dependency_document(given: Mapping[str, Any]) -> dict[str, Any]:
    """``feature enabled variants`` as stored: enabled by default; variants only if the parent must be on."""
    enabled = given.get("enabled") is not False
    return {
        "feature": given["feature"],
        "enabled": enabled,
        "variants": list(given.get("variants") or []) if enabled else [],
    }


def dependency_problems(
    wishes: Sequence[Wish],
    *,
    project: str,
    flags: Mapping[str, FlagPlace],
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
    for wish in wishes:
        if wish.parent in parents[wish.child]:
            repeated.add(id(wish))
        parents[wish.child].add(wish.parent)
        children[wish.parent].add(wish.child)
    for wish in wishes:
        message = _place_problem(wish, project, flags) or _chain_problem(wish, parents, children)
        if message is None and id(wish) in repeated:
            message = f"{wish.child} already depends on {wish.parent}"
        if message:
            yield Problem(wish.path, message)


def _place_problem(wish: Wish, project: str, flags: Mapping[str, FlagPlace]) -> str | None:
    if wish.child == wish.parent:
        return f"{wish.child} cannot depend on itself"
    place = flags.get(wish.parent)
    if place is None:
        return f"there is no flag {wish.parent}"
    if place.project != project:
        return f"{wish.parent} is in project {place.project}; a parent must be in the same project, {project}"
    if place.archived:
        return f"{wish.parent} is archived; a parent must be active"
    return None


def _chain_problem(
    wish: Wish, parents: Mapping[str, set[str]], children: Mapping[str, set[str]]
) -> str | None:
    if grandparents := parents.get(wish.parent):
        if wish.child in grandparents:
            return f"{wish.parent} depends on {wish.child}; flags cannot depend on each other"
        return f"{wish.parent} itself depends on {min(grandparents)}; a parent cannot have a parent"
    if grandchildren := children.get(wish.child):
        return f"{min(grandchildren)} depends on {wish.child}; a parent cannot have a parent"
    return None
