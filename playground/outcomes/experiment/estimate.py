"""The difference between two sides, from moments of one or several strata.

Within a stratum, numbers are those of tea-tasting: Welch's test, CUPED (A. Deng, Y. Xu, R. Kohavi, T. Walker, WSDM
2013) and the delta method for ratios (A. Deng, U. Knoblich, J. Lu, KDD 2018). Strata are combined with the weights of
their units, so that a change of shares cannot pose as an effect (Simpson's paradox).

Intervals that hold at every look: asymptotic confidence sequences.

I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy, A. Ramdas, Time-uniform central limit theory and asymptotic
confidence sequences, Annals of Statistics 52(6), 2024 (arXiv:2103.06476), equations 9, 155 and 161 of its version 7.
``gbstats`` implements the same, but only with numpy 1 and pandas 1; tests compare with numbers that it gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, inf, log, sqrt
from typing import Any, Literal

import numpy as np
from scipy import stats
from tea_tasting.aggr import Aggregates
from tea_tasting.metrics.mean import Mean

from playground.outcomes.experiment.result import Interval
from playground.outcomes.experiment.units import (
    COVARIATE,
    COVARIATE_DENOMINATOR,
    DENOMINATOR,
    NUMERATOR,
    Floats,
    Ints,
)

NOTHING = Interval(None, None)


def find_moments(values: Mapping[str, Floats], groups: Ints, count: int) -> list[Aggregates | None]:
    """The moments of each of ``count`` groups; None of those with fewer than two units. Groups below 0 do not count."""
    inside = groups >= 0
    groups, values = groups[inside], {name: each[inside] for name, each in values.items()}
    sizes = np.bincount(groups, minlength=count)
    few = np.maximum(sizes, 1)
    means = {name: np.bincount(groups, each, count) / few for name, each in values.items()}
    apart = {name: each - means[name][groups] for name, each in values.items()}

    def vary(left: str, right: str) -> Floats:
        return np.bincount(groups, apart[left] * apart[right], count) / np.maximum(sizes - 1, 1)

    variances = {name: vary(name, name) for name in values}
    covariances = {pair: vary(*pair) for pair in combinations(values, 2)}
    return [
        Aggregates(
            int(size),
            {name: float(each[group]) for name, each in means.items()},
            {name: float(each[group]) for name, each in variances.items()},
            {pair: float(each[group]) for pair, each in covariances.items()},
        )
        if size >= 2
        else None
        for group, size in enumerate(sizes)
    ]


@dataclass(frozen=True)
class Part:
    """A side in one stratum: its value, the variance of that value, units, and the weight of the stratum."""

    value: float
    variance: float
    units: int
    weight: float


@dataclass(frozen=True)
class Side:
    parts: tuple[Part, ...]

    @property
    def value(self) -> float:
        return sum(part.weight * part.value for part in self.parts)

    @property
    def variance(self) -> float:
        return sum(part.weight**2 * part.variance for part in self.parts)

    @property
    def units(self) -> int:
        return sum(part.units for part in self.parts)

    def spread(self, scale: float = 1.0) -> float:
        """What Satterthwaite's degrees of freedom divide by. ``scale`` is that of the values."""
        return sum((part.weight**2 * part.variance / scale**2) ** 2 / (part.units - 1) for part in self.parts)


@dataclass(frozen=True)
class Terms:
    """How intervals and p are made."""

    method: Literal["sequential", "fixed"]
    alpha: float
    tuning: int
    power: float


@dataclass(frozen=True)
class Estimate:
    """``interval`` and ``lift_interval`` at level 1 - ``alpha``. All None if a side lacks two units in each stratum."""

    control: Side
    side: Side
    difference: float | None = None
    error: float | None = None
    interval: Interval = NOTHING
    lift: float | None = None
    lift_interval: Interval = NOTHING
    p: float | None = None


def combine(strata: Iterable[tuple[Aggregates | None, Aggregates | None]]) -> tuple[Side, Side]:
    """Control and side of all strata in which both have units."""
    pairs = [pair for control, side in strata if control and side and (pair := _adjust(control, side))]
    total = sum(control.units + side.units for control, side in pairs)
    weighed = [
        [replace(part, weight=(control.units + side.units) / total) for part in (control, side)]
        for control, side in pairs
    ]
    return Side(tuple(control for control, _ in weighed)), Side(tuple(side for _, side in weighed))


def _adjust(control: Aggregates, side: Aggregates) -> tuple[Part, Part] | None:
    """The values of two sides of a stratum, as ratios and adjusted for their covariate. None without a denominator."""
    denominator = DENOMINATOR if DENOMINATOR in control.mean_ else None
    if denominator and not (control.mean(denominator) and side.mean(denominator)):
        return None
    total = control + side
    covariate = (COVARIATE, COVARIATE_DENOMINATOR if COVARIATE_DENOMINATOR in control.mean_ else None)
    has_covariate = COVARIATE in control.mean_ and all(each.mean(covariate[1]) for each in (control, side))
    variance = total.ratio_var(*covariate) if has_covariate else 0
    numbers = (NUMERATOR, denominator)
    slope = total.ratio_cov(*numbers, *covariate) / variance if variance else 0.0
    middle = total.mean(COVARIATE) / total.mean(covariate[1]) if slope else 0.0

    def make(each: Aggregates) -> Part:
        value, spread = each.mean(NUMERATOR) / each.mean(denominator), each.ratio_var(*numbers)
        if slope:
            value -= slope * (each.mean(COVARIATE) / each.mean(covariate[1]) - middle)
            spread += slope * (slope * each.ratio_var(*covariate) - 2 * each.ratio_cov(*numbers, *covariate))
        return Part(float(value), max(0.0, float(spread)) / each.count(), each.count(), 1.0)

    return make(control), make(side)


def compare(control: Side, side: Side, terms: Terms) -> Estimate:
    if not control.parts:
        return Estimate(control, side)
    difference, error = side.value - control.value, sqrt(control.variance + side.variance)
    if not error:
        return Estimate(control, side, difference, 0.0)
    factor = _find_factor(control, side, terms)
    lift = side.value / control.value - 1 if control.value else None
    return Estimate(
        control,
        side,
        difference,
        error,
        Interval(difference - factor * error, difference + factor * error),
        lift,
        _find_lift_interval(control, side, terms),
        _find_p(control, side, difference / error, terms),
    )


def _find_freedom(control: Side, side: Side, scales: tuple[float, float] = (1.0, 1.0)) -> float:
    """Welch and Satterthwaite's degrees of freedom, over all sides of all strata."""
    variance = control.variance / scales[0] ** 2 + side.variance / scales[1] ** 2
    return variance**2 / (control.spread(scales[0]) + side.spread(scales[1]))


def _find_factor(control: Side, side: Side, terms: Terms, scales: tuple[float, float] = (1.0, 1.0)) -> float:
    """By how many standard errors an interval reaches to either side."""
    if terms.method == "sequential":
        return find_factor(control.units + side.units, terms.alpha, terms.tuning)
    return float(stats.t.ppf(1 - terms.alpha / 2, _find_freedom(control, side, scales)))


def _find_p(control: Side, side: Side, statistic: float, terms: Terms) -> float:
    if terms.method == "sequential":
        return find_p(statistic, control.units + side.units, terms.alpha, terms.tuning)
    return 2 * float(stats.t.sf(abs(statistic), _find_freedom(control, side)))


def _find_lift_interval(control: Side, side: Side, terms: Terms) -> Interval:
    """On the scale of logarithms (delta method), so that it cannot reach below -100 %."""
    if not control.value or side.value / control.value <= 0:
        return NOTHING
    ratio, scales = side.value / control.value, (control.value, side.value)
    error = sqrt(control.variance / control.value**2 + side.variance / side.value**2)
    reach = exp(min(700.0, _find_factor(control, side, terms, scales) * error))
    return Interval(ratio / reach - 1, ratio * reach - 1)


def find_power(estimate: Estimate, terms: Terms) -> tuple[float | None, float | None]:
    """The smallest lift that is found with the power asked for, and the power with which one of 5 % is.

    tea-tasting solves it, for a sample with this standard error. A sequential interval is as wide as one at a fixed
    horizon with a smaller alpha.
    """
    control, side = estimate.control, estimate.side
    if not estimate.error or not control.value:
        return None, None
    is_fixed = terms.method == "fixed"
    alpha = terms.alpha if is_fixed else 2 * float(stats.norm.sf(_find_factor(control, side, terms)))
    sample = Aggregates(
        control.units + side.units,
        {"value": abs(control.value)},
        {"value": estimate.error**2 / (1 / control.units + 1 / side.units)},
    )
    given: dict[str, Any] = {
        "alpha": max(alpha, 1e-12),
        "ratio": side.units / control.units,
        "use_t": is_fixed,
    }
    solve = Mean("value", power=terms.power, **given).solve_power_from_aggregates
    five = Mean("value", rel_effect_size=0.05, **given).solve_power_from_aggregates
    return float(solve(sample, "rel_effect_size")[0].rel_effect_size), float(five(sample, "power")[0].power)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """S. Holm, 1979: holds however the tests depend on each other. Tests that are None are not made."""
    order = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    least = -inf
    for rank, (p, place) in enumerate(order):
        least = max(least, min(1.0, p * (len(order) - rank)))
        adjusted[place] = least
    return adjusted


def find_rho(alpha: float, tuning: float) -> float:
    """The mixture for which intervals are narrowest at ``tuning`` units."""
    return sqrt((-2 * log(alpha) + log(-2 * log(alpha) + 1)) / tuning)


def find_factor(units: int, alpha: float, tuning: float) -> float:
    """By how many standard errors an interval reaches to either side, after this many units."""
    spread = units * find_rho(alpha, tuning) ** 2
    return sqrt(2 * (spread + 1) / spread * log(sqrt(spread + 1) / alpha))


def find_p(statistic: float, units: int, alpha: float, tuning: float) -> float:
    """Of a difference of so many standard errors. At most ``alpha`` if and only if the interval excludes 0."""
    spread = units * find_rho(alpha, tuning) ** 2
    return min(1.0, exp(-(statistic**2) * spread / (2 * (spread + 1)) + log(spread + 1) / 2))
