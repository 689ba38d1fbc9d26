"""Compiled flags and segments, which evaluations use instead of the stored documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from playground.engine.constraints import CompiledConstraint, Conditions
from playground.engine.strategies import CompiledStrategy
from playground.engine.variants import CompiledVariants


@dataclass(frozen=True, slots=True)
class CompiledSegment:
    """A compiled segment. All its constraints must hold. `digest` works as in a flag."""

    id: str
    name: str
    conditions: Conditions
    digest: bytes

    @property
    def constraints(self) -> tuple[CompiledConstraint, ...]:
        return self.conditions.constraints


@dataclass(frozen=True, slots=True)
class Parent:
    """A parent and its required state. Empty `variants` mean any."""

    name: str
    enabled: bool
    variants: tuple[str, ...]


class Traits(NamedTuple):
    """The context fields that affect a flag's result. Most flags of a compilation share the same object.

    `compared`: fields that its own conditions compare. `exact`: fields for which each value may get another result,
    because it is hashed or selects a variant. `has_segments`: whether those of its segments count too.
    """

    compared: frozenset[str]
    exact: frozenset[str]
    has_segments: bool

    @classmethod
    def of(cls, strategies: Sequence[CompiledStrategy], variants: CompiledVariants | None) -> Traits:
        lists = [each for each in (variants, *(strategy.variants for strategy in strategies)) if each]
        exact = {strategy.rollout.stickiness for strategy in strategies if strategy.rollout is not None}
        exact.update(each.stickiness for each in lists)
        exact.update(field for each in lists for *_, field in each.overrides)
        compared = (constraint.field for strategy in strategies for constraint in strategy.constraints)
        return cls(frozenset(compared), frozenset(exact), any(strategy.segments for strategy in strategies))


@dataclass(frozen=True, slots=True)
class CompiledFlag:
    """A compiled flag in one environment. `fault` is the reason why SDKs cannot read it; None if they can.

    `digest` identifies its document, with those of its segments; `strategies_digest` is the concatenation of its
    strategies' digests. Both are empty if JSON cannot represent the document.
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
    traits: Traits
