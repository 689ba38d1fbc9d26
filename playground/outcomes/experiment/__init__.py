"""Did it work? Statistics of an experiment from rows that say which side their unit had. Without Django or a database.

    measures = (Measure("bought", "proportion", "bought"),)
    phases = (Phase(start, {"off": 0.5, "on": 0.5}),)
    collector = collect(Design(measures, phases, control="off", start=start, end=end))  # raises ExtraMissing
    collector.add(units, sides, times, cells)  # for each chunk of rows; raises BadCell
    to_document(analyse(collector))  # plain JSON, with camelCase names

A *unit* is one value of the flag's stickiness field, usually a user. A *side* is what a unit had: ``on``, ``off`` or
the name of a variant. numpy, scipy and tea-tasting come with ``flagadmin[experiments]``; importing this needs none.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from playground.outcomes.experiment.design import BEFORE, Design, Measure, Method, Phase
from playground.outcomes.experiment.problems import EXTRA, BadCell, ExtraMissing
from playground.outcomes.experiment.result import (
    Analysis,
    Breakdown,
    Check,
    Comparison,
    Counts,
    Interval,
    Point,
    SharesSeen,
    SideValue,
    to_document,
)

if TYPE_CHECKING:
    from playground.outcomes.experiment.units import Collector

__all__ = [
    "BEFORE",
    "EXTRA",
    "Analysis",
    "BadCell",
    "Breakdown",
    "Check",
    "Comparison",
    "Counts",
    "Design",
    "ExtraMissing",
    "Interval",
    "Measure",
    "Method",
    "Phase",
    "Point",
    "SharesSeen",
    "SideValue",
    "analyse",
    "collect",
    "is_installed",
    "to_document",
]


def is_installed() -> bool:
    return all(find_spec(name) for name in ("numpy", "scipy", "tea_tasting"))


def collect(design: Design) -> Collector:
    """Takes the rows, in any order. Keeps 20 bytes a row and 8 for each column that the design names, nothing else.

    ``Collector.add(units, sides, times, cells)`` takes a chunk of rows:

    - ``units``: texts, the values of the stickiness field. Rows with an empty one are left out.
    - ``sides``: what each row had at its time: "off", "on" or the name of a variant. None if that is unknown, random
      or in between, or if no split decided: someone whom no strategy reaches is no control. A unit counts from its
      first row that has a side; then all its rows do. Rows before ``design.start`` need no side: they are for the
      check of the period before, and for covariates.
    - ``times``: datetimes in UTC.
    - ``cells``: by each of ``design.columns``, the texts of the rows. Measures are numbers, ``true`` or ``false``; an
      empty cell adds nothing.
    """
    if not is_installed():
        raise ExtraMissing
    from playground.outcomes.experiment.units import Collector

    return Collector(design)


def analyse(collector: Collector) -> Analysis:
    """Analyses what was collected. Takes about 1 s for each million units, measure and ten days."""
    from playground.outcomes.experiment.analysis import analyse_units

    return analyse_units(collector)
