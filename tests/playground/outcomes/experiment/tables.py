"""Rows for analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from playground.outcomes.experiment import Analysis, Design, Measure, Phase, analyse, collect
from playground.outcomes.experiment.units import Collector

START = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HALVES = (Phase(START, {"off": 1, "on": 1}),)
BOUGHT = Measure("bought", "proportion", "bought")


def design(*measures: Measure, **options: Any) -> Design:
    given = {"phases": HALVES, "control": "off", "start": START, "end": START + 30 * DAY, **options}
    return Design(measures or (BOUGHT,), **given)


def collect_rows(
    plan: Design, rows: Sequence[tuple[str, str | None, float]], **cells: Sequence[str]
) -> Collector:
    """Rows of a unit, its side, and days after the start."""
    collector = collect(plan)
    times = [START + days * DAY for *_, days in rows]
    collector.add([unit for unit, *_ in rows], [side for _, side, _ in rows], times, cells)
    return collector


def analyse_rows(
    plan: Design, rows: Sequence[tuple[str, str | None, float]], **cells: Sequence[str]
) -> Analysis:
    return analyse(collect_rows(plan, rows, **cells))


def analyse_units(plan: Design, sides: np.ndarray, **cells: np.ndarray) -> Analysis:
    """One row for each unit, on the first day. Sides are numbers of those of the control and ``on``, ``b``, ``c``."""
    names = (plan.control, "on", "b", "c")
    rows = [(str(unit), names[side], 0.5) for unit, side in enumerate(sides)]
    return analyse_rows(plan, rows, **{name: write(values) for name, values in cells.items()})


def write(values: np.ndarray) -> list[str]:
    return ["" if number != number else repr(number) for number in map(float, values)]


def states(analysis: Analysis) -> Mapping[str, str]:
    """The states of checks by their names; the worst if there are several of a name."""
    order = ("passed", "skipped", "note", "warning", "failed")
    found = sorted(analysis.checks, key=lambda check: order.index(check.state))
    return {check.name: check.state for check in found}
