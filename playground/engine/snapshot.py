"""A snapshot: all flags of an environment, compiled once and evaluated many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cached_property

from playground.engine.batch import Batch
from playground.engine.context import Columns
from playground.engine.flags import CompiledFlag, CompiledSegment

SPARE_ENTRIES = 200


class Snapshot:
    """Compiled flags of one environment, sorted by name (code points). Immutable; safe to share."""

    def __init__(
        self,
        flags: tuple[CompiledFlag, ...],
        segments: tuple[CompiledSegment, ...],
        columns: Columns,
        *,
        environment: str,
        compiled_entries: int | None = None,
    ) -> None:
        self.flags = flags
        self.segments = segments
        self.columns = columns
        self.environment = environment
        self.entries = len(columns) + len(segments)
        """How many columns and segments it has, among them what was taken over and no flag needs any more."""
        self.compiled_entries = self.entries if compiled_entries is None else compiled_entries
        """How many there were when everything was last compiled together."""

    @property
    def is_worn(self) -> bool:
        """Whether so many of its columns and segments may be unused that it should be compiled from scratch."""
        return self.entries > 2 * self.compiled_entries + SPARE_ENTRIES

    @cached_property
    def batch(self) -> Batch:
        """The strategies and segments, laid out for evaluation."""
        return Batch(self.flags, self.segments)

    @cached_property
    def sizes(self) -> Counter[str]:
        """The number of flags of each project."""
        return Counter(flag.project for flag in self.flags)

    @cached_property
    def names(self) -> list[str]:
        return [flag.name for flag in self.flags]

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each flag, by name."""
        return {flag.name: position for position, flag in enumerate(self.flags)}

    @cached_property
    def children(self) -> list[int]:
        """The positions of the flags that depend on others."""
        return [position for position, flag in enumerate(self.flags) if flag.parents]

    @cached_property
    def drawing(self) -> dict[int, set[int]]:
        """The flags whose result may be random, by the column whose value a rollout lacks, and their children."""
        drawing: dict[int, set[int]] = {}
        for position, flag in enumerate(self.flags):
            for strategy in flag.strategies:
                if strategy.rollout is not None and strategy.rollout.draws:
                    drawing.setdefault(strategy.rollout.column, set()).add(position)
        for positions in drawing.values():
            positions.update(
                child
                for child in self.children
                if any(self.positions.get(parent.name) in positions for parent in self.flags[child].parents)
            )
        return drawing

    def only(self, name: str) -> Snapshot:
        """A snapshot of only this flag and its parents; empty if the name is unknown."""
        if name not in self.positions:
            return self._of([])
        names = {name, *(parent.name for parent in self.flags[self.positions[name]].parents)}
        return self._of([flag for flag in self.flags if flag.name in names])

    def without(self, names: Collection[str]) -> Snapshot:
        """This snapshot without some of its flags."""
        return self._of([flag for flag in self.flags if flag.name not in names])

    def _of(self, flags: list[CompiledFlag]) -> Snapshot:
        return Snapshot(tuple(flags), self.segments, self.columns, environment=self.environment)
