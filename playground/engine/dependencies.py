"""Flags that depend on others.

A parent has to be among the flags of the snapshot and may not depend on a flag itself, so cycles and chains
are never followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from playground.engine.variants import NONE

if TYPE_CHECKING:
    from playground.engine.evaluator import PlainOutcome
    from playground.engine.snapshot import CompiledFlag, Parent, Snapshot


class Problem(Enum):
    """Why a parent is not as its child needs it."""

    MISSING = "missing"
    CHAINED = "chained"
    OFF = "off"
    ON = "on"
    VARIANT = "variant"
    UNKNOWN = "unknown"


class Unmet(NamedTuple):
    parent: Parent
    problem: Problem


def unmet_parents(snapshot: Snapshot, outcomes: Sequence[PlainOutcome], position: int) -> tuple[Unmet, ...]:
    """The parents of the flag at a position that are not as it needs them."""
    found = []
    for parent in snapshot.flags[position].parents:
        problem = _problem(snapshot, outcomes, parent)
        if problem is not None:
            found.append(Unmet(parent, problem))
    return tuple(found)


def _problem(snapshot: Snapshot, outcomes: Sequence[PlainOutcome], parent: Parent) -> Problem | None:
    position = snapshot.positions.get(parent.name)
    if position is None:
        return Problem.MISSING
    flag, outcome = snapshot.flags[position], outcomes[position]
    result, on = outcome[:2]
    if flag.parents:
        return Problem.CHAINED
    if flag.enabled and result is None:
        return Problem.UNKNOWN
    if on is not parent.enabled:
        return Problem.OFF if parent.enabled else Problem.ON
    if parent.variants and not _has_variant(flag, outcome, parent.variants):
        return Problem.VARIANT
    return None


def _has_variant(flag: CompiledFlag, outcome: PlainOutcome, wanted: Sequence[str]) -> bool:
    """SDKs hold a parent without any variant to have every variant."""
    name = variant_name(flag, outcome)
    return name is None or name in wanted


def variant_name(flag: CompiledFlag, outcome: PlainOutcome) -> str | None:
    """The variant a flag gives, None if it gives none."""
    _, on, decided, pick, _, strategies, _ = outcome
    if not on:
        return None
    if decided != NONE:
        variants, (_, _, _, chosen, _) = flag.strategies[decided].variants, strategies[decided]
        if variants is not None and chosen != NONE:
            return variants.names[chosen]
    return flag.variants.names[pick] if flag.variants is not None and pick != NONE else None
