"""Checks whether the parents of a flag are in the state that the flag requires.

A parent has to be among the flags of the snapshot and may not depend on a flag itself, so cycles and chains
are never followed.
"""

from __future__ import annotations

from collections.abc import Sequence

from playground.engine.flags import Parent
from playground.engine.outcomes import ParentProblem, PlainOutcome, State, Unmet, state_of, variant_name
from playground.engine.snapshot import Snapshot


def unmet_parents(snapshot: Snapshot, outcomes: Sequence[PlainOutcome], position: int) -> tuple[Unmet, ...]:
    """The parents of the flag at a position that are not in the required state."""
    found = []
    for parent in snapshot.flags[position].parents:
        problem = _problem(snapshot, outcomes, parent)
        if problem is not None:
            found.append(Unmet(parent, problem))
    return tuple(found)


def _problem(snapshot: Snapshot, outcomes: Sequence[PlainOutcome], parent: Parent) -> ParentProblem | None:
    position = snapshot.positions.get(parent.name)
    if position is None:
        return ParentProblem.MISSING
    flag, outcome = snapshot.flags[position], outcomes[position]
    if flag.parents:
        return ParentProblem.CHAINED
    state = state_of(flag, outcome)
    if state is State.UNKNOWN:
        return ParentProblem.UNKNOWN
    if (state is State.ON) is not parent.enabled:
        return ParentProblem.OFF if parent.enabled else ParentProblem.ON
    # As in SDKs, a parent that gives no variant satisfies any.
    if parent.variants and variant_name(flag, outcome) not in (None, *parent.variants):
        return ParentProblem.VARIANT
    return None
