"""Checks whether the parents of a flag are in the required state.

A parent must be among the flags of the snapshot and may not depend on a flag itself, so cycles and chains are never
followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from playground.engine.flags import Parent
from playground.engine.outcomes import ParentProblem, PlainOutcome, State, Unmet, find_state
from playground.engine.snapshot import Snapshot

VariantOf = Callable[[int], str | None]
"""The variant that the parent at a position gives its children."""


def find_unmet_parents(
    snapshot: Snapshot, outcomes: Sequence[PlainOutcome], position: int, variant_of: VariantOf
) -> tuple[Unmet, ...]:
    """The parents of the flag at a position that are not in the required state."""
    unmet = []
    for parent in snapshot.flags[position].parents:
        problem = _find_problem(snapshot, outcomes, parent, variant_of)
        if problem is not None:
            unmet.append(Unmet(parent, problem))
    return tuple(unmet)


def _find_problem(
    snapshot: Snapshot, outcomes: Sequence[PlainOutcome], parent: Parent, variant_of: VariantOf
) -> ParentProblem | None:
    position = snapshot.positions.get(parent.name)
    if position is None:
        return ParentProblem.MISSING
    flag, outcome = snapshot.flags[position], outcomes[position]
    if flag.parents:
        return ParentProblem.CHAINED
    state = find_state(flag, outcome)
    if state is State.UNKNOWN:
        return ParentProblem.UNKNOWN
    if (state is State.ON) is not parent.enabled:
        return ParentProblem.OFF if parent.enabled else ParentProblem.ON
    # As in SDKs, a parent without a variant satisfies any.
    if parent.variants and variant_of(position) not in (None, *parent.variants):
        return ParentProblem.VARIANT
    return None
