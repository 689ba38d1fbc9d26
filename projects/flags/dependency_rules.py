"""Which flag may depend on which. Judged together, so that a list of wishes cannot build what one wish could not."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flagadmin.errors import Problem


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """Where a flag is: what its dependencies need to know of it."""

    project: str
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """``child`` shall depend on ``parent``; ``path`` is where that was asked for."""

    child: str
    parent: str
    path: str


def dependency_document(given: Mapping[str, Any]) -> dict[str, Any]:
    """``feature enabled variants`` as stored: on by default, and variants only of a parent that must be on."""
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
    """What is wrong with wishes for dependencies in ``project``.

    ``flags`` are the flags named (those visible to the caller, as they will be), ``existing`` the (child, parent)
    pairs that stay. A parent must be an active flag of the same project that has no parent itself: chains and
    circles are refused, whether stored or asked for. Several parents for one child are allowed.
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
