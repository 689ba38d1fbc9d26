"""How much memory compiled definitions hold, for a cache bounded in bytes.

Walking every object exactly would cost more than compiling; these are sizes per kind of object, measured on
CPython 3.11 with tracemalloc (tests/engine/test_memory.py holds them to the measurement), plus texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playground.engine.constraints import CompiledConstraint
    from playground.engine.snapshot import CompiledFlag, CompiledSegment, Templates
    from playground.engine.strategies import CompiledStrategy
    from playground.engine.variants import CompiledVariants

FLAG = 320
STRATEGY = 560
CONSTRAINT = 900
VARIANTS = 420
VARIANT = 110


def memory_of(
    flags: Sequence[CompiledFlag], segments: Sequence[CompiledSegment], templates: Templates | None
) -> int:
    """Bytes held by compiled flags and segments, with their templates."""
    total = sum(_flag(flag) for flag in flags) + sum(
        _constraints(segment.constraints) for segment in segments
    )
    if templates is not None:
        total += sum(templates.size(flag.template) for flag in flags)
        total += sum(templates.size(segment.template) for segment in segments)
    return total


def _flag(flag: CompiledFlag) -> int:
    return FLAG + _variants(flag.variants) + sum(_strategy(strategy) for strategy in flag.strategies)


def _strategy(strategy: CompiledStrategy) -> int:
    return STRATEGY + _variants(strategy.variants) + _constraints(strategy.constraints)


def _constraints(constraints: Sequence[CompiledConstraint]) -> int:
    return sum(CONSTRAINT + len(constraint.need) + len(constraint.met) for constraint in constraints)


def _variants(variants: CompiledVariants | None) -> int:
    return 0 if variants is None else VARIANTS + VARIANT * len(variants.names)
