"""What the page of an analysis shows: numbers in words, and the geometry of its pictures in percentages."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from flagadmin.core.lists.charts import VariantSplit, make_variant_split

MARKS = {"passed": "on", "warning": "warn", "failed": "unknown", "note": "info", "skipped": "off"}
WORDS = {
    "passed": "Fits",
    "warning": "Warning",
    "failed": "Failed",
    "note": "Note",
    "skipped": "Not checked",
}
ORDER = ("failed", "warning", "note", "passed", "skipped")
MAX_OVER_TIME = 12
MAX_BREAKDOWNS = 60
WIDEST = 5.0
"""The widest lift that is drawn, either way."""
SHOWN_POINTS = 2
"""The scale of a lift over time fits the intervals after the first 1/n of the points, which are the widest."""


class CheckView(NamedTuple):
    words: str
    mark: str
    sentence: str


class ResultRow(NamedTuple):
    """A comparison. ``bar``: (x, width, x of the middle) of its interval; None without one."""

    measure: str
    side: str
    control: str
    value: str
    control_value: str
    units: int
    control_units: int
    lift: str
    interval: str
    bar: tuple[str, str, str] | None
    p: str
    is_significant: bool
    detectable: str
    sentence: str


class Plot(NamedTuple):
    """Bars of one scale. ``zero``: where no difference is."""

    rows: Sequence[ResultRow]
    zero: str


class OverTime(NamedTuple):
    """A lift over time; points are for ``viewBox="0 0 1000 100"``. ``levels``: (y, text); ``marks``: (x, text)."""

    measure: str
    side: str
    line: str
    band: str
    levels: Sequence[tuple[str, str]]
    marks: Sequence[tuple[str, str]]
    ends: tuple[datetime, datetime]
    rows: Sequence[tuple[datetime, int, str, str]]


def list_checks(result: Mapping[str, Any]) -> list[CheckView]:
    """What needs attention first."""
    checks = sorted(result["checks"], key=lambda check: ORDER.index(check["state"]))
    return [CheckView(WORDS[each["state"]], MARKS[each["state"]], each["sentence"]) for each in checks]


def make_plot(comparisons: Sequence[Mapping[str, Any]], kinds: Mapping[str, str]) -> Plot:
    ends = [end for each in comparisons for end in each["liftInterval"].values() if end is not None]
    lifts = [each["lift"] for each in comparisons if each["lift"] is not None]
    low, high = (_bound(choose([*ends, *lifts, 0.0])) for choose in (min, max))
    room = (high - low or 0.02) * 0.06
    low, high = low - room, high + room

    def place(lift: float) -> float:
        return min(max((lift - low) / (high - low) * 100, 0.0), 100.0)

    rows = [_make_row(each, kinds[each["measure"]], place) for each in comparisons]
    return Plot(rows, f"{place(0):.2f}%")


def _make_row(comparison: Mapping[str, Any], kind: str, place: Callable[[float], float]) -> ResultRow:
    side, control, interval = comparison["sideValue"], comparison["controlValue"], comparison["liftInterval"]
    low, high, lift = interval["low"], interval["high"], comparison["lift"]
    bar = None
    if lift is not None and not (low is None and high is None):
        x = 0.0 if low is None else place(low)
        end = 100.0 if high is None else place(high)
        bar = (f"{x:.2f}%", f"{max(end - x, 0.2):.2f}%", f"{place(lift):.2f}%")
    p = comparison["pAdjusted"]
    return ResultRow(
        comparison["measure"],
        comparison["side"],
        control["side"],
        format_value(side["value"], kind),
        format_value(control["value"], kind),
        side["units"],
        control["units"],
        format_lift(lift),
        f"{format_lift(low)} to {format_lift(high)}" if bar else "",
        bar,
        "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
        comparison["isSignificant"],
        format_lift(comparison["detectable"]).lstrip("+"),
        comparison["sentence"],
    )


def list_changes(result: Mapping[str, Any]) -> list[tuple[datetime, str]]:
    """The changes of the flag in the period."""
    elsewhere = "changed something in another project"
    return [(datetime.fromisoformat(each["at"]), each["sentence"] or elsewhere) for each in result["changes"]]


def list_over_time(result: Mapping[str, Any]) -> list[OverTime]:
    drawn = [each for each in result["comparisons"] if len(_list_points(each)) > 1]
    return [_make_over_time(each, list_changes(result)) for each in drawn[:MAX_OVER_TIME]]


def _list_points(comparison: Mapping[str, Any]) -> list[tuple[datetime, Mapping[str, Any]]]:
    points = [point for point in comparison["overTime"] if point["lift"] is not None]
    return [(datetime.fromisoformat(point["at"]), point) for point in points]


def _make_over_time(comparison: Mapping[str, Any], changes: Sequence[tuple[datetime, str]]) -> OverTime:
    points = _list_points(comparison)
    (begin, _), (end, _) = points[0], points[-1]
    later = points[len(points) // SHOWN_POINTS :]
    bounds = [bound for _, each in later for bound in each["liftInterval"].values() if bound is not None]
    top = _bound(max(map(abs, [*bounds, *(each["lift"] for _, each in later)]), default=0.01)) or 0.01

    def x(at: datetime) -> float:
        return (at - begin) / (end - begin) * 100

    def y(lift: float | None, beyond: float) -> float:
        lift = beyond if lift is None else lift
        return 50 - min(max(lift / top, -1.0), 1.0) * 50

    lows = [f"{x(at) * 10:.1f},{y(each['liftInterval']['low'], -top):.2f}" for at, each in points]
    highs = [f"{x(at) * 10:.1f},{y(each['liftInterval']['high'], top):.2f}" for at, each in points]
    return OverTime(
        comparison["measure"],
        comparison["side"],
        " ".join(f"{x(at) * 10:.1f},{y(each['lift'], 0):.2f}" for at, each in points),
        " ".join([*highs, *reversed(lows)]),
        [("0%", format_lift(top)), ("50%", "0 %"), ("100%", format_lift(-top))],
        [(f"{x(at):.2f}%", text) for at, text in changes if begin <= at <= end],
        (begin, end),
        [
            (at, each["units"], format_lift(each["lift"]), _format_interval(each["liftInterval"]))
            for at, each in points
        ],
    )


def list_shares(result: Mapping[str, Any]) -> list[tuple[datetime, VariantSplit]]:
    """Each part of the period from its beginning, with the shares that were set and the units that were seen."""
    sides = result["sides"]
    return [
        (
            datetime.fromisoformat(each["start"]),
            make_variant_split(
                {side: each["set"][side] for side in sides if side in (each["set"] or {})},
                {side: each["units"][side] for side in sides if side in each["units"]},
            ),
        )
        for each in result["shares"]
    ]


def _bound(lift: float) -> float:
    return min(max(lift, -WIDEST), WIDEST)


def format_lift(lift: float | None) -> str:
    return "–" if lift is None else f"{100 * lift:+.1f} %".replace("-", "−")


def _format_interval(interval: Mapping[str, float | None]) -> str:
    return f"{format_lift(interval['low'])} to {format_lift(interval['high'])}"


def format_value(value: float | None, kind: str) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.2f} %" if kind == "proportion" else f"{value:,.4g}"
