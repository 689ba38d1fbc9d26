"""Puts an analysis together: comparisons over time, breakdowns, checks.

What an analysis says to people who know no statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import ceil

import numpy as np

from playground.outcomes.experiment.checks import Checker
from playground.outcomes.experiment.design import Design, Measure
from playground.outcomes.experiment.estimate import (
    Estimate,
    Side,
    Terms,
    combine,
    compare,
    find_moments,
    find_power,
    holm,
)
from playground.outcomes.experiment.result import (
    Analysis,
    Breakdown,
    Check,
    Comparison,
    Counts,
    Interval,
    Point,
    SideValue,
)
from playground.outcomes.experiment.units import Collector, Floats, Ints, Units, to_time

MAX_POINTS = 60
DAY = 86_400.0


class Sides:
    """The sides that units had, control first, and the group of each unit by side and phase."""

    def __init__(self, collector: Collector, units: Units) -> None:
        self._phases = len(collector.design.phases)
        control, *others = collector.sides
        shared = [
            side for phase in collector.design.phases for side, share in (phase.shares or {}).items() if share
        ]
        self.names = (control, *sorted({*others, *shared} - {control}))
        places = {name: place for place, name in enumerate(self.names)}
        order = np.array([places[name] for name in collector.sides])
        self.of_units: Ints = order[units.side] if len(units) else units.side
        self.groups: Ints = self.of_units * self._phases + units.phase

    def compare(self, values: Mapping[str, Floats], terms: Terms, groups: Ints) -> list[Estimate]:
        """Each side against control. Groups below 0 do not count."""
        moments = find_moments(values, groups, len(self.names) * self._phases)
        control, *others = (moments[at : at + self._phases] for at in range(0, len(moments), self._phases))
        return [compare(*combine(zip(control, other, strict=True)), terms) for other in others]


def analyse_units(collector: Collector) -> Analysis:
    design, units = collector.design, Units(collector)
    sides = Sides(collector, units)
    count = len(design.measures) * (len(sides.names) - 1)
    terms = Terms(design.method, design.alpha / max(1, count), design.tuning, design.power)
    comparisons, values = [], []
    for measure in design.measures:
        found, last = _compare_over_time(design, units, sides, measure, terms)
        comparisons += found
        values.append(last)
    comparisons = _correct(comparisons, design)
    counts = Counts(
        len(units),
        units.crossovers,
        collector.rows,
        collector.rows_before,
        collector.rows_left_out,
        collector.rows_outside,
    )
    checker = Checker(
        design,
        units,
        sides.names,
        sides.of_units,
        counts,
        values,
        partial(sides.compare, groups=sides.groups),
    )
    checks = tuple(checker.check_all())
    return Analysis(
        sum_up(comparisons, checks),
        design.control,
        sides.names,
        counts,
        checks,
        tuple(comparisons),
        tuple(_break_down(design, units, sides, values, terms)),
        tuple(checker.find_shares()),
    )


def _compare_over_time(
    design: Design, units: Units, sides: Sides, measure: Measure, terms: Terms
) -> tuple[list[Comparison], dict[str, Floats]]:
    ends = _list_ends(design)
    points: list[list[Point]] = [[] for _ in sides.names[1:]]
    estimates: list[Estimate] = []
    values: dict[str, Floats] = {}
    for end, values in zip(ends, units.values_over_time(measure, ends), strict=True):
        present = units.first < end
        estimates = sides.compare(values, terms, np.where(present, sides.groups, -1))
        for some, found in zip(points, estimates, strict=True):
            total = found.control.units + found.side.units
            some.append(
                Point(to_time(end), total, found.difference, found.interval, found.lift, found.lift_interval)
            )
    made = []
    for side, found, some in zip(sides.names[1:], estimates, points, strict=True):
        detectable, power_at_5 = find_power(found, terms)
        comparison = _make_comparison(sides.names, side, measure, found, terms)
        made.append(replace(comparison, over_time=tuple(some), detectable=detectable, power_at_5=power_at_5))
    return made, values


def _list_ends(design: Design) -> list[float]:
    """The ends of days from the start, or of several together; the last is that of the period."""
    start, end = design.start.timestamp(), design.end.timestamp()
    step = DAY * ceil((end - start) / DAY / MAX_POINTS)
    return [*(start + step * place for place in range(1, ceil((end - start) / step))), end]


def _break_down(
    design: Design, units: Units, sides: Sides, values: Sequence[Mapping[str, Floats]], terms: Terms
) -> Iterator[Breakdown]:
    for segment in units.segments if len(units) else ():
        within = replace(terms, alpha=terms.alpha / len(segment.values))
        found = []
        for place in range(len(segment.values)):
            groups = np.where(segment.codes == place, sides.groups, -1)
            for measure, each in zip(design.measures, values, strict=True):
                estimates = zip(sides.names[1:], sides.compare(each, within, groups), strict=True)
                found += [
                    _make_comparison(sides.names, side, measure, one, within) for side, one in estimates
                ]
        corrected = iter(_correct(found, design))
        count = len(found) // len(segment.values)
        numbers = np.bincount(segment.codes, minlength=len(segment.values))
        for name, number in zip(segment.values, numbers, strict=True):
            yield Breakdown(segment.name, name, int(number), tuple(islice(corrected, count)))


def _make_comparison(
    names: Sequence[str], side: str, measure: Measure, found: Estimate, terms: Terms
) -> Comparison:
    return Comparison(
        measure.name,
        side,
        terms.method,
        _make_value(names[0], found.control),
        _make_value(side, found.side),
        found.difference,
        found.interval,
        found.lift,
        found.lift_interval,
        1 - terms.alpha,
        found.p,
        None,
        is_significant=False,
        detectable=None,
        power_at_5=None,
        strata=len(found.control.parts),
        sentence="",
    )


def _make_value(name: str, side: Side) -> SideValue:
    if not side.parts:
        return SideValue(name, 0, None, None)
    return SideValue(name, side.units, side.value, side.variance**0.5)


def _correct(comparisons: Iterable[Comparison], design: Design) -> list[Comparison]:
    """With p for as many tests as there are, and sentences that say so."""
    comparisons = list(comparisons)
    corrected = []
    for each, p in zip(comparisons, holm([each.p for each in comparisons]), strict=True):
        new = replace(each, p_adjusted=p, is_significant=p is not None and p <= design.alpha)
        corrected.append(replace(new, sentence=describe(new, design)))
    return corrected


def describe(comparison: Comparison, design: Design) -> str:
    measure, side, control = comparison.measure, comparison.side, design.control
    if comparison.p is None:
        return f"{measure} cannot be compared between {side} and {control}: {_say_why(comparison)}."
    if comparison.lift is None or comparison.lift_interval.low is None:
        lift, interval = _number(comparison.difference), _range(comparison.interval, _number)
    else:
        lift, interval = _percent(comparison.lift), _range(comparison.lift_interval, _percent)
    if comparison.is_significant:
        higher = "higher" if (comparison.difference or 0) > 0 else "lower"
        return f"{measure} is {lift.lstrip('+−')} {higher} with {side} than with {control} ({interval})."
    told = f"{measure} shows no difference between {side} and {control} beyond chance ({lift}, {interval})."
    if comparison.detectable is not None:
        least, power = _percent(comparison.detectable).lstrip("+"), f"{100 * design.power:.0f} %"
        told += f" A difference of {least} would have been found with a probability of {power}."
    return told


def _say_why(comparison: Comparison) -> str:
    if not comparison.control_value.units:
        return "one of them lacks units, or what they are divided by"
    return "all units have the same value"


def sum_up(comparisons: Sequence[Comparison], checks: Sequence[Check]) -> str:
    """The clearest comparison of the first measure, and whether to believe it."""
    failed = [check for check in checks if check.state == "failed"]
    if failed:
        return f"Do not use this result. {failed[0].sentence}"
    first = [each for each in comparisons if each.measure == comparisons[0].measure] if comparisons else []
    if not first:
        return "Nobody had another side than control."
    clearest = min(first, key=lambda each: 2.0 if each.p is None else each.p)
    others = sum(each.is_significant for each in comparisons) - clearest.is_significant
    more = f" {others} other comparison{'s' * (others > 1)} found a difference." if others else ""
    return clearest.sentence + more


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %".replace("-", "−")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:+.3g}".replace("-", "−")


def _range(interval: Interval, write: Callable[[float | None], str]) -> str:
    return f"{write(interval.low)} to {write(interval.high)}"
