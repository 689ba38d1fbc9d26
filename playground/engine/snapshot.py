"""Compiled definitions: what one evaluation after the other reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from playground.engine.batch import Program
from playground.engine.constraints import CompiledConstraint, Conditions
from playground.engine.context import Columns
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import CompiledVariants


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    """A segment: all its constraints have to hold. `template` is the caller's (see Templates)."""

    id: str
    name: str
    conditions: Conditions
    template: Any

    @property
    def constraints(self) -> tuple[CompiledConstraint, ...]:
        return self.conditions.constraints


@dataclass(frozen=True, slots=True)
class Parent:
    """What a flag needs of another. `variants` is empty where any will do."""

    name: str
    enabled: bool
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledFlag:
    """A flag in one environment, ready to run. `fault` is why SDKs cannot read it, None if they can.

    `digest` is of the document it was compiled from; empty where that is not all it depends on.
    """

    name: str
    project: str
    enabled: bool
    strategies: tuple[CompiledStrategy, ...]
    variants: CompiledVariants | None
    parents: tuple[Parent, ...]
    fault: str | None
    digest: bytes
    template: Any


@dataclass(frozen=True, slots=True)
class Templates:
    """What a caller wants made ahead for its own output, once per flag and segment.

    Each function gets the stored document and the compiled object (with `template` None); what it returns is
    kept as `template` and never looked at here. `size` tells the bytes one of them holds.
    """

    flag: Callable[[Mapping[str, Any], CompiledFlag], Any]
    segment: Callable[[Mapping[str, Any], CompiledSegment], Any]
    size: Callable[[Any], int]


class Snapshot:
    """Compiled flags of one environment, sorted by name (code points). Immutable; safe to share."""

    def __init__(
        self,
        flags: tuple[CompiledFlag, ...],
        segments: tuple[CompiledSegment, ...],
        columns: Columns,
        *,
        environment: str,
        nbytes: int,
        fresh: int | None = None,
    ) -> None:
        self.flags = flags
        self.segments = segments
        self.columns = columns
        self.environment = environment
        self.nbytes = nbytes
        """About how much memory the snapshot holds, in bytes."""
        self.layout: Any = None
        """The caller's own, as the templates are."""
        self.carried = len(columns) + len(segments)
        """How many columns and segments it has; those taken over may be no longer needed."""
        self.fresh = self.carried if fresh is None else fresh
        """How many there were when all of it was last compiled together."""

    @cached_property
    def program(self) -> Program:
        """Its strategies, laid out for evaluating them."""
        return Program(self.flags, self.segments)

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
        """A view on some of the flags: it shares everything, so it has no size of its own."""
        return Snapshot(
            tuple(flags),
            self.segments,
            self.columns,
            environment=self.environment,
            nbytes=0,
            fresh=self.fresh,
        )
