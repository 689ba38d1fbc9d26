"""The outcome of each strategy and flag in an evaluation, and the precedence of causes."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from playground.engine.flags import CompiledFlag, Parent
from playground.engine.variants import NONE, CompiledVariants

StrategyOutcome = tuple[bool | None, int, int, int, int]
"""The outcome of one strategy, a plain tuple because there are very many of them:

verdict (None: only an SDK can tell, or the strategy is disabled), bits of the conditions that hold, rollout bucket from
1 to 100 (0: none), index of the chosen variant (NONE: none), its place among the weights (0: none, or overridden).
"""

VERDICT: Final = 0
BITS: Final = 1
BUCKET: Final = 2
PICK: Final = 3
PLACE: Final = 4


class ParentProblem(Enum):
    """Why a parent is not in the state that its child requires."""

    MISSING = "missing"
    CHAINED = "chained"
    OFF = "off"
    ON = "on"
    VARIANT = "variant"
    UNKNOWN = "unknown"


class Unmet(NamedTuple):
    """A parent that is not in the state that its child requires."""

    parent: Parent
    problem: ParentProblem


class FlagOutcome(NamedTuple):
    """The outcome of one flag. Evaluations keep plain tuples of the same fields."""

    result: bool | None
    """The result of the strategies; None: only an SDK can tell."""
    on: bool
    """Whether an application gets the flag on; false if only an SDK can tell."""
    decided: int
    """Position of the first strategy that passed, NONE if none did."""
    pick: int
    """Index of the flag's own variant, NONE if it gets none."""
    place: int
    """The place of that variant among the weights."""
    strategies: list[StrategyOutcome]
    unmet: tuple[Unmet, ...] = ()
    """Parents that are not in the required state."""


RESULT: Final = 0
ON: Final = 1
STRATEGIES: Final = 5
"""The positions of these fields in a plain outcome."""

PlainOutcome = tuple[bool | None, bool, int, int, int, list[StrategyOutcome], tuple[Unmet, ...]]
"""The fields of a FlagOutcome."""


class State(Enum):
    """The result shown on pages: On, Off, Can't tell, or on a share of calls (``playground.engine.chance``)."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"
    RANDOM = "random"


class Cause(Enum):
    """The cause of a flag's result. If several apply, the first in this order counts."""

    SWITCHED_OFF = "switched off"
    UNREADABLE = "SDKs cannot read it"
    NO_STRATEGY_PASSED = "no strategy passed"
    PARENT = "a parent"
    STRATEGY_PASSED = "a strategy passed"
    ONLY_SDK = "only an SDK can evaluate a strategy"
    NO_STRATEGIES = "no strategies"


# For code that runs for each flag: reading them as class attributes would double its time.
(
    SWITCHED_OFF,
    UNREADABLE,
    NO_STRATEGY_PASSED,
    PARENT,
    STRATEGY_PASSED,
    ONLY_SDK,
    NO_STRATEGIES,
) = Cause


def find_cause(flag: CompiledFlag, outcome: PlainOutcome) -> Cause:
    """Finds the cause of a flag's result. A parent decides only if the flag's own strategies do not keep it off."""
    result, _, decided, _, _, _, unmet = outcome
    if not flag.enabled:
        return SWITCHED_OFF
    if flag.fault is not None:
        return UNREADABLE
    if result is False:
        return NO_STRATEGY_PASSED
    if unmet:
        return PARENT
    if decided != NONE:
        return STRATEGY_PASSED
    return ONLY_SDK if result is None else NO_STRATEGIES


_STATES = {
    SWITCHED_OFF: State.OFF,
    UNREADABLE: State.OFF,
    STRATEGY_PASSED: State.ON,
    ONLY_SDK: State.UNKNOWN,
    NO_STRATEGIES: State.ON,
    NO_STRATEGY_PASSED: State.OFF,
}


def find_state(flag: CompiledFlag, outcome: PlainOutcome) -> State:
    """The state of a flag: on, off, or can't tell. Can't tell applies only if data unknown to the server would
    change the result.
    """
    cause = find_cause(flag, outcome)
    if cause is not PARENT:
        return _STATES[cause]
    return State.UNKNOWN if find_deciding_parent(outcome).problem is ParentProblem.UNKNOWN else State.OFF


def find_deciding_parent(outcome: PlainOutcome) -> Unmet:
    """The first parent that certainly keeps the flag off, else the first one that only an SDK can evaluate."""
    unmet = outcome[-1]
    return next((parent for parent in unmet if parent.problem is not ParentProblem.UNKNOWN), unmet[0])


def find_variant_name(flag: CompiledFlag, outcome: PlainOutcome) -> str | None:
    """The variant that an application gets; None if it gets none."""
    chosen = find_chosen_variant(flag, outcome)
    return None if chosen is None else chosen[0].names[chosen[1]]


def find_chosen_variant(flag: CompiledFlag, outcome: PlainOutcome) -> tuple[CompiledVariants, int] | None:
    """The variant list from which an application gets one, and its index; None if it gets none."""
    _, on, decided, pick, _, strategies, _ = outcome
    if not on:
        return None
    if decided != NONE:
        variants, chosen = flag.strategies[decided].variants, strategies[decided][PICK]
        if variants is not None and chosen != NONE:
            return variants, chosen
    return (flag.variants, pick) if flag.variants is not None and pick != NONE else None
