"""What an analysis found: plain values that ``to_document`` turns into JSON. Numbers that do not exist are None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, Literal

CheckName = Literal[
    "shares", "units", "before", "crossovers", "covariate", "interaction", "left out", "phases"
]
State = Literal["passed", "warning", "failed", "note", "skipped"]


@dataclass(frozen=True)
class Check:
    """``name``: "shares" (sample ratio mismatch), "units" (too few), "before" (a difference before the start),
    "crossovers" (above 5 %), "covariate" (changed by the variant), "interaction" (other flags), "left out" (rows whose
    side is not known, above 5 %), "phases" (shares changed in the period).

    ``state``: "passed"; "failed" means that the result should not be used; "warning" that it needs care; "note" that
    nothing is wrong; "skipped" that the table has not what it needs. ``sentence`` says it in words. ``measure`` and
    ``side`` are None if it concerns all.
    """

    name: CheckName
    state: State
    sentence: str
    p: float | None = None
    measure: str | None = None
    side: str | None = None


@dataclass(frozen=True)
class SideValue:
    """A side's value of a measure: a share from 0 to 1, a mean or a ratio. ``error`` is its standard error.

    It is adjusted for the covariate if there is one.
    """

    side: str
    units: int
    value: float | None
    error: float | None


@dataclass(frozen=True)
class Interval:
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Point:
    """The lift of all units until the end of a day. ``at`` is that end."""

    at: datetime
    units: int
    difference: float | None
    interval: Interval
    lift: float | None
    lift_interval: Interval


@dataclass(frozen=True)
class Comparison:
    """A side against control, of one measure.

    - ``difference`` in units of the measure, ``lift`` relative to control (0.03 is 3 %); with their intervals.
    - ``level``: of the intervals, corrected for the number of comparisons, such as 0.975 for two (Bonferroni), so that
      all hold together with 95 %.
    - ``p`` of this comparison alone; ``p_adjusted`` for the number of comparisons (Holm). With "sequential" both may be
      looked at as often as one likes. ``is_significant``: ``p_adjusted`` is at most ``alpha``.
    - ``detectable``: the smallest lift (relative, without a sign) that this many units would have shown with ``power``;
      ``power_at_5``: how probable it was to find a lift of 5 %. Both None in breakdowns.
    - ``strata``: how many phases were combined.
    - ``sentence``: for a manager.
    - ``over_time``: at most 60 points, empty in breakdowns.
    """

    measure: str
    side: str
    method: Literal["sequential", "fixed"]
    control_value: SideValue
    side_value: SideValue
    difference: float | None
    interval: Interval
    lift: float | None
    lift_interval: Interval
    level: float
    p: float | None
    p_adjusted: float | None
    is_significant: bool
    detectable: float | None
    power_at_5: float | None
    strata: int
    sentence: str
    over_time: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Breakdown:
    """The comparisons of the units with one ``value`` of a segment, corrected within the segment."""

    segment: str
    value: str
    units: int
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class SharesSeen:
    """Of one phase: by side, the share that was set (None if not known), the share of units, and their number."""

    start: datetime
    set: Mapping[str, float] | None
    seen: Mapping[str, float]
    units: Mapping[str, int]
    p: float | None


@dataclass(frozen=True)
class Counts:
    """``units`` that count; ``crossovers`` among all that had a side; ``rows`` in the period and ``rows_before`` it;
    ``rows_left_out`` of those in the period, without a unit or a side; ``rows_outside``: later than the period, or
    earlier than ``before``.
    """

    units: int
    crossovers: int
    rows: int
    rows_before: int
    rows_left_out: int
    rows_outside: int


@dataclass(frozen=True)
class Analysis:
    """``sentence`` sums up the first measure, and says so if a check failed. ``sides`` begin with control."""

    sentence: str
    control: str
    sides: tuple[str, ...]
    counts: Counts
    checks: tuple[Check, ...]
    comparisons: tuple[Comparison, ...]
    breakdowns: tuple[Breakdown, ...]
    shares: tuple[SharesSeen, ...]


def to_document(value: Any) -> Any:
    """As JSON has it: objects with camelCase names, lists, ISO 8601."""
    if is_dataclass(value):
        return {_to_camel(field.name): to_document(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_document(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_document(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _to_camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.title, rest))
