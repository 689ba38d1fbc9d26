"""The documents the engine reads, as decoded from JSON.

Nothing in them is trusted to have its declared type: null, another type or an unknown key is allowed
everywhere, and gives a definite result.
"""

from __future__ import annotations

from typing import Any, TypedDict


class ConstraintDefinition(TypedDict, total=False):
    contextName: str
    operator: str
    values: list[str]
    value: str
    inverted: bool
    caseInsensitive: bool


class VariantDefinition(TypedDict, total=False):
    """A variant of a flag or of a strategy; `overrides` are read on flags alone."""

    name: str
    weight: int
    stickiness: str
    weightType: str
    payload: dict[str, str]
    overrides: list[dict[str, Any]]


class StrategyDefinition(TypedDict, total=False):
    id: str
    name: str
    title: str | None
    disabled: bool
    parameters: dict[str, str]
    constraints: list[ConstraintDefinition]
    segments: list[int]
    variants: list[VariantDefinition]


class DependencyDefinition(TypedDict, total=False):
    """What a flag needs of a parent: `enabled` is true unless given, `variants` empty for any."""

    feature: str
    enabled: bool
    variants: list[str]


class FlagDefinition(TypedDict, total=False):
    """A flag in one environment. `enabled` is the environment's switch."""

    name: str
    project: str
    enabled: bool
    strategies: list[StrategyDefinition]
    variants: list[VariantDefinition]
    dependencies: list[DependencyDefinition]
    impression_data: bool


class SegmentDefinition(TypedDict, total=False):
    id: int
    name: str
    constraints: list[ConstraintDefinition]
