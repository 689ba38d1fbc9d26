"""Evaluates one flag for the rows of a table that may lack some of the fields on which the flag depends.

Fields that the table lacks may have had any value. An answer that depends on one is UNKNOWN; one that does not, such as
that of a flag whose rollout is at 0 %, is certain.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

from playground.comparison.results import ONE, UNKNOWN, ZERO, Path, Picks, StateResults
from playground.comparison.table import DEFAULT_IDENTIFIER, ContextTable, Mask
from playground.engine.batch import list_constraints
from playground.engine.constraints import Conditions
from playground.engine.context import DEFAULTS, format_time
from playground.engine.flags import CompiledFlag
from playground.engine.snapshot import Snapshot
from playground.engine.strategies import CompiledStrategy, Mode, Rollout
from playground.engine.variants import CompiledVariants

Unknown = ((UNKNOWN, ONE),)


class RowTable(ContextTable):
    """Rows as contexts: an empty cell is a field that is not given, and the row's time is its currentTime."""

    def __init__(
        self, fields: Sequence[str], cells: Sequence[Sequence[str]], times: Sequence[datetime]
    ) -> None:
        self.times = times
        self.cells = cells
        self._places = {field: place for place, field in enumerate(fields)}
        super().__init__(())

    def __len__(self) -> int:
        return len(self.times)

    def lacks(self, field: str) -> bool:
        return field not in self._places and field != "currentTime"

    def _list_field_texts(self, field: str) -> Iterable[str | None]:
        place, default = self._places.get(field), DEFAULTS.get(field)
        given = [default] * len(self) if place is None else [row[place] or default for row in self.cells]
        if field != "currentTime":
            return given
        return [text or format_time(time) for text, time in zip(given, self.times, strict=True)]

    def _list_default_identifiers(self) -> Iterable[str | None]:
        users, sessions = map(self._list_field_texts, ("userId", "sessionId"))
        return [user or session for user, session in zip(users, sessions, strict=True)]

    def find_lacking(self, stickiness: str) -> list[str]:
        """The fields that would be hashed for some row, and that the table lacks."""
        if stickiness == "random":
            return []
        if stickiness != "default":
            return [stickiness] if self.lacks(stickiness) else []
        if self.lacks("userId"):
            return ["userId"]
        return ["sessionId"] if self.lacks("sessionId") and self.without(DEFAULT_IDENTIFIER) else []

    def find_unidentified(self, stickiness: str) -> Mask:
        """The rows of which it is not known what is hashed."""
        if not self.find_lacking(stickiness):
            return 0
        # Those without a userId, if the table lacks the sessionId.
        by_session = stickiness == "default" and not self.lacks("userId")
        return self.without(DEFAULT_IDENTIFIER) if by_session else self.everyone


class PartialResults(StateResults):
    """The results of a flag of one state for a table. ``lacking`` are the fields that may decide and are not there."""

    table: RowTable

    def __init__(self, snapshot: Snapshot, table: RowTable, name: str) -> None:
        super().__init__(snapshot, table)
        flag = self.flag(name)
        family = [] if flag is None else [flag, *map(self.flag, (parent.name for parent in flag.parents))]
        self.lacking = sorted({field for each in family if each for field in self._list_lacking(each)})

    def _list_lacking(self, flag: CompiledFlag) -> Iterator[str]:
        if not flag.enabled or flag.fault is not None:
            return
        yield from self._list_lacking_for(flag.variants)
        for strategy in flag.strategies:
            if strategy.counts and strategy.mode is not Mode.NEVER:
                yield from self._list_lacking_conditions(strategy)
                yield from self._list_lacking_for(strategy.variants)
                if strategy.rollout is not None:
                    yield from self.table.find_lacking(strategy.rollout.stickiness)

    def _list_lacking_for(self, variants: CompiledVariants | None) -> Iterator[str]:
        if variants is not None:
            yield from (field for *_, field in variants.overrides if self.table.lacks(field))
            if variants.divides:
                yield from self.table.find_lacking(variants.stickiness)

    def _list_lacking_conditions(self, strategy: CompiledStrategy) -> Iterator[str]:
        for constraint in list_constraints(strategy, self.snapshot.segments):
            if self.table.lacks(constraint.field):
                yield constraint.field

    def _hold(self, conditions: Conditions) -> Mask:
        """Constraints on what the table lacks may hold."""
        known = tuple(each for each in conditions.constraints if not self.table.lacks(each.field))
        return super()._hold(replace(conditions, constraints=known))

    def _find_undecidable(self, strategy: CompiledStrategy) -> Mask:
        if any(self._list_lacking_conditions(strategy)):
            return self.table.everyone
        undecidable = super()._find_undecidable(strategy)
        rollout = strategy.rollout
        if rollout is None or (rollout.draws and rollout.threshold >= 100):
            return undecidable
        return undecidable | self.table.find_unidentified(rollout.stickiness)

    def _find_inside(self, rollout: Rollout) -> Iterator[tuple[Mask, Fraction]]:
        unidentified = self.table.find_unidentified(rollout.stickiness)
        for mask, share in super()._find_inside(rollout):
            yield mask & ~unidentified, share
        if rollout.threshold > 0:
            yield unidentified, ONE

    def _find_paths(self, strategies: tuple[CompiledStrategy, ...]) -> dict[Path, Mask]:
        """A strategy that may have passed before one that did may have given another variant."""
        paths = super()._find_paths(strategies)
        if not self.lacking or not any(strategy.variants for strategy in strategies):
            return paths
        doubtful = self._find_doubtful(strategies)
        split: dict[Path, Mask] = defaultdict(int)
        for path, mask in paths.items():
            if certain := mask & ~doubtful:
                split[path] |= certain
        if doubtful:
            split[Path((), ZERO, ONE)] |= doubtful
        return split

    def _find_doubtful(self, strategies: Iterable[CompiledStrategy]) -> Mask:
        """The rows for which a strategy may pass, depending on what the table lacks, before one passes for certain."""
        doubtful, left = 0, self.table.everyone
        for strategy in strategies:
            if not strategy.counts:
                continue
            passed = 0
            for where, share, verdict in self._list_verdicts(strategy):
                if verdict is None and strategy.mode is Mode.OPEN:
                    doubtful |= where & left
                elif verdict and share == 1:
                    passed |= where
            left &= ~passed
        return doubtful

    def _pick_variants(self, variants: CompiledVariants | None) -> Picks:
        picks = super()._pick_variants(variants)
        if variants is None or not any(self._list_lacking_for(variants)):
            return picks
        unknown = self.table.find_unidentified(variants.stickiness) if variants.divides else 0
        if any(self.table.lacks(field) for *_, field in variants.overrides):
            unknown = self.table.everyone
        return [*((mask & ~unknown, shares) for mask, shares in picks), (unknown, Unknown)]
