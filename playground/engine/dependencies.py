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
    from playground.engine.evaluator import FlagOutcome
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


def unmet_parents(snapshot: Snapshot, outcomes: Sequence[FlagOutcome], position: int) -> tuple[Unmet, ...]:
    """The parents of the flag at a position that are not as it needs them."""
    found = []
    for parent in snapshot.flags[position].parents:
        problem = _problem(snapshot, outcomes, parent)
        if problem is not None:
            found.append(Unmet(parent, problem))
    return tuple(found)


def _problem(snapshot: Snapshot, outcomes: Sequence[FlagOutcome], parent: Parent) -> Problem | None:
    position = snapshot.positions.get(parent.name)
    if position is None:
        return Problem.MISSING
    flag, outcome = snapshot.flags[position], outcomes[position]
    if flag.parents:
        return Problem.CHAINED
    if flag.enabled and outcome.result is None:
        return Problem.UNKNOWN
    if outcome.on is not parent.enabled:
        return Problem.OFF if parent.enabled else Problem.ON
    if parent.variants and not _has_variant(flag, outcome, parent.variants):
        return Problem.VARIANT
    return None


def _has_variant(flag: CompiledFlag, outcome: FlagOutcome, wanted: Sequence[str]) -> bool:
    """SDKs hold a parent without any variant to have every variant."""
    name = variant_name(flag, outcome)
    return name is None or name in wanted


def variant_name(flag: CompiledFlag, outcome: FlagOutcome) -> str | None:
    """The variant a flag gives, None if it gives none."""
    if not outcome.on:
        return None
    if outcome.decided != NONE:
        strategy = flag.strategies[outcome.decided]
        index = outcome.strategies[outcome.decided][3]
        if strategy.variants is not None and index != NONE:
            return strategy.variants.names[index]
    if flag.variants is not None and outcome.pick != NONE:
        return flag.variants.names[outcome.pick]
    return None
