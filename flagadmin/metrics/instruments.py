"""Counters, gauges and histograms, as Prometheus has them."""

import os
import shutil
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from flagadmin.metrics.store import Store

DIRECTORY = "FLAGADMIN_METRICS_DIRECTORY"  # the variable that tells processes where to count
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

instruments: dict[str, "Instrument"] = {}
_samplers: list[Callable[[], None]] = []


class Instrument:
    """``labels`` are the names of its labels. Their values must be few: each combination is kept for good.

    What it counts is lost unless this process is attached.
    """

    kind: ClassVar[str]
    width = 1
    store: ClassVar[Store | None] = None  # of this process, if it is attached

    def __init__(self, name: str, text: str, *labels: str) -> None:
        self.name, self.text, self.labels = name, text, labels
        instruments[name] = self

    @property
    def all_labels(self) -> tuple[str, ...]:
        return self.labels


class Counter(Instrument):
    """A number that only grows, from 0 when the server starts. Its name ends with ``_total``."""

    kind = "counter"

    def inc(self, *labels: str, by: float = 1) -> None:
        if (store := Instrument.store) is not None:
            with store.lock:
                store.values[store.place((self.name, *labels), 1)] += by


class Gauge(Instrument):
    """A number of each process that goes up and down. It has a label ``process`` besides."""

    kind = "gauge"

    @property
    def all_labels(self) -> tuple[str, ...]:
        return (*self.labels, "process")

    def set(self, value: float, *labels: str) -> None:
        if (store := Instrument.store) is not None:
            with store.lock:
                store.values[store.place((self.name, *labels), 1)] = value


class Histogram(Instrument):
    """How many values are at most as large as each of ``bounds``, and their sum."""

    kind = "histogram"

    def __init__(self, name: str, text: str, *labels: str, bounds: tuple[float, ...] = SECONDS) -> None:
        super().__init__(name, text, *labels)
        self.bounds = bounds
        self.width = len(bounds) + 2  # those above all bounds, and the sum

    def observe(self, value: float, *labels: str) -> None:
        if (store := Instrument.store) is not None:
            with store.lock:
                place = store.place((self.name, *labels), self.width)
                store.values[place + bisect_left(self.bounds, value)] += 1
                store.values[place + self.width - 1] += value


def begin(directory: Path) -> None:
    """Makes this process, and those it starts that attach, count from 0 in this directory."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)
    os.environ[DIRECTORY] = str(directory)
    attach("main")


def attach(role: str) -> None:
    """Makes the instruments of this process count, if :func:`begin` was called. ``role`` names its file."""
    if (directory := os.environ.get(DIRECTORY)) and Instrument.store is None:
        Instrument.store = Store(Path(directory), role)


def sampled(sampler: Callable[[], None]) -> Callable[[], None]:
    """A decorator: ``sampler`` sets gauges, every few seconds in each attached process that serves."""
    _samplers.append(sampler)
    return sampler


def sample() -> None:
    if Instrument.store is not None:
        for sampler in _samplers:
            sampler()
