"""A flag and a segment, compiled: what evaluations read instead of the stored documents."""

from __future__ import annotations

from dataclasses import dataclass

from playground.engine.constraints import CompiledConstraint, Conditions
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import CompiledVariants


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    """A segment: all its constraints have to hold."""

    id: str
    name: str
    conditions: Conditions

    @property
    def constraints(self) -> tuple[CompiledConstraint, ...]:
        return self.conditions.constraints


@dataclass(frozen=True, slots=True)
class Parent:
    """A flag that another depends on. `variants` is empty where any will do."""

    name: str
    enabled: bool
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledFlag:
    """A flag in one environment. `fault` is why SDKs cannot read it, None if they can.

    `digest` identifies the document it was compiled from; empty if the flag depends on segments too.
    """

    name: str
    project: str
    enabled: bool
    strategies: tuple[CompiledStrategy, ...]
    variants: CompiledVariants | None
    parents: tuple[Parent, ...]
    fault: str | None
    digest: bytes
