"""How many generated examples a test tries, and which: the same at every run, unless more are asked for."""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")

# A factor: a quarter unless told otherwise, 1 for all that were chosen, 20 or more for overnight runs.
FACTOR = float(os.environ.get("FLAGADMIN_EXAMPLES") or 0.25)


def examples(number: int) -> int:
    return max(5, round(number * FACTOR))


# A chance find must not fail a run that has nothing to do with it, nor may a slow machine.
settings.register_profile(
    "repeatable",
    max_examples=examples(100),
    derandomize=FACTOR <= 1,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def first_every_day(seeds: Sequence[T]) -> list[Any]:
    """Parameters: `make test` runs only the first of these seeds, `make test-exhaustive` the others."""
    first, *others = seeds
    return [first, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in others)]


def spread(every: Sequence[T], number: int, period: int = 1, turn: int = 0) -> Sequence[T]:
    """At most ``number`` of the items, evenly spread. If they repeat after ``period`` items, every kind is among them.

    Those of the next ``turn`` are others, until each has been among them.
    """
    step = max(1, -(-len(every) // number))
    step += period > 1 and step % period == 0
    return every[turn % step :: step]
