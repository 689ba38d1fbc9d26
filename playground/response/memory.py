"""Estimates the memory of a compiled flag with its fragments, for a cache limited in bytes.

The constants are measured on CPython 3.11. What flags share is counted by `playground.engine.sharing.Shared`.
Flags of many shapes take between half and twice the estimate (tests/playground/response/test_memory.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from playground.engine.constraints import CONSTRAINT, VALUE
from playground.engine.strategies import CompiledStrategy

if TYPE_CHECKING:
    from playground.response.fragments import Cuts, StrategyFragments

FLAG, STRATEGY, SEGMENT = 700, 800, 900
"""Bytes of the objects that one has, and of its places in the layout and the batch."""


def size_of_flag(strategies: Iterable[tuple[CompiledStrategy, StrategyFragments]]) -> int:
    """The bytes that a flag shares with no other."""
    return FLAG + sum(_size_of_strategy(compiled, fragments) for compiled, fragments in strategies)


def _size_of_strategy(compiled: CompiledStrategy, fragments: StrategyFragments) -> int:
    size = STRATEGY + len(fragments.head) + len(fragments.end) + len(fragments.links)
    if len(compiled.constraints) > len(fragments.cuts):  # its own one is compiled from its parameters
        size += CONSTRAINT + VALUE * fragments.head.count(b",")
    return size


def size_of_segment(cuts: Cuts, end: bytes) -> int:
    """The bytes of a segment."""
    return SEGMENT + len(end) + sum(map(len, cuts))
