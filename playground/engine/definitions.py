"""Flags and segments as they are stored, and as the engine compiles them.

The engine does not trust these types: null, another type, an unknown key and a missing key are allowed everywhere and
give a definite result.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ConstraintDefinition(TypedDict):
    """An operator reads `values` or `value`."""

    contextName: str
    operator: str
    values: list[str]
    value: NotRequired[str]
    inverted: NotRequired[bool]
    caseInsensitive: NotRequired[bool]


class Payload(TypedDict):
    type: str
    value: str


class Override(TypedDict):
    contextName: str
    values: list[str]


class VariantDefinition(TypedDict):
    """A variant of a flag or of a strategy, with its weight out of 1000. Only flags' variants have `overrides`."""

    name: str
    weight: int
    stickiness: str
    weightType: NotRequired[str]
    payload: NotRequired[Payload]
    overrides: NotRequired[list[Override]]


class StrategyDefinition(TypedDict):
    """A strategy. A strategy that is not stored yet has no `id`, and `sortOrder` None if it comes last."""

    id: NotRequired[str]
    name: str
    title: str | None
    disabled: bool
    sortOrder: int | None
    parameters: dict[str, str]
    constraints: list[ConstraintDefinition]
    segments: list[int]
    variants: list[VariantDefinition]


class DependencyDefinition(TypedDict):
    """A parent and its required state. Empty `variants` mean any."""

    feature: str
    enabled: bool
    variants: list[str]


class FlagDefinition(TypedDict):
    """A flag in one environment. `enabled` is the environment's switch."""

    name: str
    project: str
    enabled: bool
    impression_data: bool
    stale: bool
    archived: NotRequired[bool]
    strategies: list[StrategyDefinition]
    variants: list[VariantDefinition]
    dependencies: list[DependencyDefinition]


class SegmentDefinition(TypedDict):
    id: int
    name: str
    constraints: list[ConstraintDefinition]
