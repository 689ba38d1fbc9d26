"""All flags of an environment, compiled: what one evaluation after the other reads."""

from __future__ import annotations

from collections import Counter
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
        """Whether it has so much that may not be needed that it is better compiled anew."""
        return self.entries > 2 * self.compiled_entries + SPARE_ENTRIES

    @cached_property
    def batch(self) -> Batch:
        """Its strategies and segments, laid out for evaluating them."""
        return Batch(self.flags, self.segments)

    @cached_property
    def sizes(self) -> Counter[str]:
        """How many flags each project has."""
        return Counter(flag.project for flag in self.flags)

    @cached_property
    def names(self) -> list[str]:
        return [flag.name for flag in self.flags]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where the flag of a name is."""
        return {flag.name: position for position, flag in enumerate(self.flags)}

    @cached_property
    def children(self) -> list[int]:
        """The positions of the flags that depend on others."""
        return [position for position, flag in enumerate(self.flags) if flag.parents]

    def only(self, name: str) -> Snapshot:
        """The flag of this name with its parents (empty if it is unknown): all it takes to evaluate it."""
        if name not in self.positions:
            return self._of([])
        wanted = {name, *(parent.name for parent in self.flags[self.positions[name]].parents)}
        return self._of([flag for flag in self.flags if flag.name in wanted])

    def _of(self, flags: list[CompiledFlag]) -> Snapshot:
        return Snapshot(tuple(flags), self.segments, self.columns, environment=self.environment)
