"""Estimates the memory of a compiled flag with its fragments, for a cache limited in bytes.

The constants are measured on CPython 3.11. What flags share is counted by `playground.engine.sharing.Shared`.
Flags of many shapes take between half and twice the estimate (tests/playground/response/test_memory.py).
"""

from __future__ import annotations

from playground.engine.constraints import CONSTRAINT, VALUE
from playground.engine.strategies import CompiledStrategy

FLAG, STRATEGY, SEGMENT = 700, 800, 900
"""Bytes of the objects that one has, and of its places in the layout and the batch."""


def measure_strategy(compiled: CompiledStrategy, cuts: tuple[bytes, ...], head: bytes, *more: bytes) -> int:
    """The bytes that a strategy shares with no other: its `cuts` are shared, its `head` and `more` are not."""
    size = STRATEGY + len(head) + sum(map(len, more))
    if len(compiled.constraints) > len(cuts):  # its own one is compiled from its parameters
        size += CONSTRAINT + VALUE * head.count(b",")
    return size


def measure_segment(cuts: tuple[bytes, ...], end: bytes) -> int:
    """The bytes of a segment."""
    return SEGMENT + len(end) + sum(map(len, cuts))
