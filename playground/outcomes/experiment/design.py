"""What is to be analysed. Everything here is given before the rows are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["proportion", "mean", "ratio"]
Method = Literal["sequential", "fixed"]

BEFORE = "(before)"
"""As a covariate: the measure itself, from the rows before the start."""
MAX_MEASURES, MAX_SEGMENTS, MAX_SIDES = 10, 3, 10


@dataclass(frozen=True)
class Measure:
    """What is measured of each unit.

    - ``proportion``: the share of units with a number other than 0, or ``true``, in ``column`` in at least one row.
    - ``mean``: the mean over units of the sum of ``column`` over the rows of a unit.
    - ``ratio``: the sum of ``column`` divided by that of ``denominator``; without one, by the number of rows in which
      ``column`` is not empty, such as the mean value of an order. Its variance is that between units (delta method).

    ``covariate``: a column that says something of a unit from before the start, of which the first number in the period
    counts, or BEFORE. It makes intervals narrower (CUPED). Units without one get the mean of all.
    """

    name: str
    kind: Kind
    column: str
    denominator: str | None = None
    covariate: str | None = None


@dataclass(frozen=True)
class Phase:
    """From ``start`` until the next phase, sides had these shares. Shares are relative: 1 and 1 are halves.

    A side without a share had nobody. ``shares`` None: not known, so that they are not compared with those seen.
    """

    start: datetime
    shares: Mapping[str, float] | None


@dataclass(frozen=True)
class Design:
    """Raises ValueError, whose text names the field, if it is not sound.

    - ``phases`` in the order of time; the first begins at ``start`` or before. Units of two are never pooled.
    - ``end`` is exclusive. ``before`` is where the period before begins, None for all rows that there are.
    - ``exposure``: a column; units count from their first row in which it is ``true`` or a number other than 0, with
      all rows from then on.
    - ``crossovers``: what becomes of units that had more than one side: they keep their first, or are left out.
    - ``segments``: columns by which results are broken down; a unit has the value of its first row that counts.
    - ``alpha``: how often, at most, an analysis may name an effect where there is none, over all measures and sides.
    - ``tuning``: for which number of units sequential intervals are narrowest. To be chosen before seeing the data.
    - ``interacting``: names of other flags that split the same units, listed as a check.
    """

    measures: Sequence[Measure]
    phases: Sequence[Phase]
    control: str
    start: datetime
    end: datetime
    before: datetime | None = None
    method: Method = "sequential"
    exposure: str | None = None
    crossovers: Literal["keep", "leave out"] = "keep"
    segments: Sequence[str] = ()
    alpha: float = 0.05
    power: float = 0.8
    tuning: int = 5_000
    interacting: Sequence[str] = ()

    def __post_init__(self) -> None:
        for problem in self._find_problems():
            raise ValueError(problem)

    def _find_problems(self) -> list[str]:
        names = [measure.name for measure in self.measures]
        starts = [phase.start for phase in self.phases]
        rules = {
            f"measures: must be 1 to {MAX_MEASURES}": 1 <= len(names) <= MAX_MEASURES,
            "measures: names must differ": len(set(names)) == len(names),
            "measures: only a ratio has a denominator": all(
                m.kind == "ratio" or not m.denominator for m in self.measures
            ),
            f"segments: must be at most {MAX_SEGMENTS}": len(self.segments) <= MAX_SEGMENTS,
            "start: must be before the end": self.start < self.end,
            "before: must be before the start": self.before is None or self.before < self.start,
            "phases: must be in the order of time, the first not after the start": bool(starts)
            and starts == sorted(set(starts))
            and starts[0] <= self.start,
            "phases: shares must not be negative, and some must be above 0": all(
                phase.shares is None
                or (min(phase.shares.values(), default=-1) >= 0 and sum(phase.shares.values()) > 0)
                for phase in self.phases
            ),
            "alpha: must be above 0 and below 0.5": 0 < self.alpha < 0.5,
            "power: must be above 0.5 and below 1": 0.5 < self.power < 1,
            "tuning: must be 100 to 100,000,000": 100 <= self.tuning <= 100_000_000,
        }
        return [problem for problem, holds in rules.items() if not holds]

    @property
    def columns(self) -> list[str]:
        """All columns that are read, each once."""
        numbers = [column for measure in self.measures for column in (measure.column, measure.denominator)]
        covariates = [measure.covariate for measure in self.measures if measure.covariate != BEFORE]
        return list(dict.fromkeys(filter(None, (*numbers, *covariates, self.exposure, *self.segments))))
