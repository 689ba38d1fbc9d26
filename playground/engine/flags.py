"""Compiled flags and segments, which evaluations read instead of the stored documents."""

from __future__ import annotations

from dataclasses import dataclass

from playground.engine.constraints import CompiledConstraint, Conditions
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import CompiledVariants


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    """A compiled segment. All its constraints must hold. `digest` is as of a flag."""

    id: str
    name: str
    conditions: Conditions
    digest: bytes

    @property
    def constraints(self) -> tuple[CompiledConstraint, ...]:
        return self.conditions.constraints


@dataclass(frozen=True, slots=True)
class Parent:
    """A parent, and the state it must have. Empty `variants` mean any."""

    name: str
    enabled: bool
    variants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledFlag:
    """A compiled flag in one environment. `fault` says why SDKs cannot read it, None if they can.

    `digest` identifies the document it was compiled from, with those of its segments; `strategies_digest` those of its
    strategies, one behind the other. Both are empty if JSON cannot hold the document.
    """

    name: str
    project: str
    enabled: bool
    strategies: tuple[CompiledStrategy, ...]
    variants: CompiledVariants | None
    parents: tuple[Parent, ...]
    fault: str | None
    digest: bytes
    strategies_digest: bytes
