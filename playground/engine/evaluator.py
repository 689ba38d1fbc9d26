"""One evaluation of a snapshot: every flag's result, and enough kept to explain each of them.

The outcomes are plain tuples, made once per flag and read by index: sentences, pages and the wire all look
things up in them, nothing is evaluated twice. Time and randomness are arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from playground.engine.batch import PICK, VERDICT, StrategyOutcome
from playground.engine.context import Context, Moment, sticky_field
from playground.engine.dependencies import Unmet, unmet_parents, variant_name
from playground.engine.snapshot import CompiledFlag, Snapshot
from playground.engine.variants import NONE, Random


class FlagOutcome(NamedTuple):
    """What one evaluation found for one flag. Evaluations keep plain tuples of the same fields."""

    result: bool | None
    """The strategies' result; None: only an SDK can tell."""
    on: bool
    """What an application gets; false where only an SDK can tell."""
    decided: int
    """Position of the first strategy that passed, NONE if none did."""
    pick: int
    """Index of the flag's own variant, NONE if it gets none."""
    place: int
    """The place of that pick among the weights."""
    strategies: list[StrategyOutcome]
    unmet: tuple[Unmet, ...] = ()
    """Parents that are not as the flag needs them."""


PlainOutcome = tuple[bool | None, bool, int, int, int, list[StrategyOutcome], tuple[Unmet, ...]]
"""A FlagOutcome before anybody asks for its fields by name."""


class Evaluation:
    """The outcomes of one snapshot for one context, in the order of `snapshot.flags`."""

    def __init__(self, snapshot: Snapshot, context: Context, random: Random) -> None:
        self.snapshot = snapshot
        self.context = context
        self.values = snapshot.columns.values(context)
        self.segment_bits = [segment.conditions.bits(self.values) for segment in snapshot.segments]
        self.found = snapshot.program.run(self.values, self._held(), random)
        self.outcomes = self._outcomes(random)
        self._apply_parents()

    def _outcomes(self, random: Random) -> list[PlainOutcome]:
        """Every flag's, as if it had no parents."""
        program, values = self.snapshot.program, self.values
        found = self.found.outcomes()
        start = 0
        outcomes: list[PlainOutcome] = []
        for flag, end, sure in zip(self.snapshot.flags, program.ends, program.sure, strict=True):
            strategies = found[start:end]
            start = end
            decided = 0
            for outcome in strategies:
                if outcome[VERDICT]:
                    break
                decided += 1
            else:
                outcomes.append(
                    (False, False, NONE, NONE, NONE, strategies, ())
                    if sure
                    else _without_pass(flag, strategies, values, random)
                )
                continue
            pick = place = NONE
            passed = flag.fault is None
            on = passed and flag.enabled
            if on and flag.variants is not None and outcome[PICK] == NONE:
                pick, place = flag.variants.pick(values, random)
            outcomes.append((passed, on, decided, pick, place, strategies, ()))
        return outcomes

    def _held(self) -> list[bool]:
        """Whether each segment holds."""
        return [self.holds(position) for position in range(len(self.segment_bits))]

    def _apply_parents(self) -> None:
        """Takes the parents into account. Parents have none themselves, so one pass is enough."""
        alone = {
            position: unmet_parents(self.snapshot, self.outcomes, position)
            for position in self.snapshot.children
        }
        for position, unmet in alone.items():
            if unmet:
                outcome = FlagOutcome(*self.outcomes[position])
                self.outcomes[position] = outcome._replace(on=False, pick=NONE, unmet=unmet)

    def holds(self, segment: int) -> bool:
        """Whether the segment at a position holds."""
        return self.segment_bits[segment] == self.snapshot.segments[segment].conditions.all_hold

    def __len__(self) -> int:
        return len(self.outcomes)

    def pairs(self) -> Iterator[tuple[CompiledFlag, FlagOutcome]]:
        """Every flag with its outcome."""
        for flag, outcome in zip(self.snapshot.flags, self.outcomes, strict=True):
            yield flag, FlagOutcome(*outcome)

    def pair(self, name: str) -> tuple[CompiledFlag, FlagOutcome]:
        """The flag of this name with its outcome. Raises KeyError if there is none."""
        position = self.snapshot.positions[name]
        return self.snapshot.flags[position], FlagOutcome(*self.outcomes[position])

    def variant(self, flag: CompiledFlag, outcome: FlagOutcome) -> str | None:
        """The name of the variant that an application gets, None if it gets none."""
        return variant_name(flag, outcome)

    def sticky(self, stickiness: str) -> tuple[str, str] | None:
        """The field and the value that a stickiness hashes for this context, None if there is none."""
        field = sticky_field(self.context, stickiness)
        return None if field is None else (field, self.context.values[field])


def evaluate(snapshot: Snapshot, context: Context, *, now: Moment, random: Random) -> Evaluation:
    """Evaluates every flag of a snapshot. `random` returns numbers in [0, 1)."""
    return Evaluation(snapshot, context.at(now), random)


def _without_pass(
    flag: CompiledFlag, strategies: list[StrategyOutcome], values: list[Any], random: Random
) -> PlainOutcome:
    """The outcome of a flag of whose strategies none passed."""
    if not strategies and flag.enabled and flag.fault is None:
        pick, place = flag.variants.pick(values, random) if flag.variants is not None else (NONE, NONE)
        return True, True, NONE, pick, place, strategies, ()
    unknown = flag.fault is None and any(
        outcome[VERDICT] is None and strategy.counts
        for strategy, outcome in zip(flag.strategies, strategies, strict=True)
    )
    return None if unknown else False, False, NONE, NONE, NONE, strategies, ()
