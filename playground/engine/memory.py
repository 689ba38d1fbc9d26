"""How much memory compiled definitions hold, for a cache bounded in bytes.

Walking every object exactly would cost more than compiling; these are sizes per kind of object, measured on
CPython 3.11 with tracemalloc (tests/playground/engine/test_memory.py holds them to the measurement), plus texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playground.engine.constraints import CompiledConstraint
    from playground.engine.snapshot import CompiledFlag, CompiledSegment, Templates
    from playground.engine.strategies import CompiledStrategy
    from playground.engine.variants import CompiledVariants

FLAG = 200
STRATEGY = 260
CONDITION = 110
CONSTRAINT = 700
PATTERN = 6_000
VARIANTS = 330
VARIANT = 110


def memory_of(
    flags: Sequence[CompiledFlag], segments: Sequence[CompiledSegment], templates: Templates | None
) -> int:
    """Bytes held by compiled flags and segments, with their templates."""
    constraints = [strategy.constraints for flag in flags for strategy in flag.strategies]
    constraints += [segment.constraints for segment in segments]
    total = sum(_flag(flag) for flag in flags) + _constraints(constraints)
    if templates is not None:
        total += sum(templates.size(flag.template) for flag in flags)
        total += sum(templates.size(segment.template) for segment in segments)
    return total


def _flag(flag: CompiledFlag) -> int:
    return FLAG + _variants(flag.variants) + sum(_strategy(strategy) for strategy in flag.strategies)


def _strategy(strategy: CompiledStrategy) -> int:
    return STRATEGY + _variants(strategy.variants) + CONDITION * len(strategy.constraints)


def _constraints(held: Iterable[Sequence[CompiledConstraint]]) -> int:
    """Equal constraints are one object, however many strategies have them."""
    distinct = {id(constraint): constraint for constraints in held for constraint in constraints}
    return sum(_constraint(constraint) for constraint in distinct.values())


def _constraint(constraint: CompiledConstraint) -> int:
    size = CONSTRAINT + len(constraint.unmet) + len(constraint.met)
    return size + PATTERN if constraint.operator == "REGEX" else size


def _variants(variants: CompiledVariants | None) -> int:
    return 0 if variants is None else VARIANTS + VARIANT * len(variants.names)
