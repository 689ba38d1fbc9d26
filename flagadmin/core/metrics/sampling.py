"""Functions that read the current values of gauges."""

from collections.abc import Callable

_samplers: list[Callable[[], None]] = []


def register_sampler(sampler: Callable[[], None]) -> Callable[[], None]:
    """A decorator: ``sampler`` sets gauges, every few seconds in each process that serves."""
    _samplers.append(sampler)
    return sampler


def sample() -> None:
    for sampler in _samplers:
        sampler()
