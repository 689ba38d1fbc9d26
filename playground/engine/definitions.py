"""Types of stored flags and segments as decoded from JSON, before they are compiled.

The engine does not trust these types: null, another type or an unknown key is allowed everywhere and gives a definite
result.
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
    """A variant of a flag or of a strategy. Only flags' variants have `overrides`."""

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
    """A parent and the state it must have. `enabled` is true by default; empty `variants` mean any."""

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
