"""What an analysis says to people who know no statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from playground.outcomes.experiment.design import Design
from playground.outcomes.experiment.result import Check, Comparison, Interval


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
