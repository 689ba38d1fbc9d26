"""Line charts of impact metrics: of a safeguard since its plan was started, and of the last hour to month."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from flagadmin.core.db.statements import fetch_rows
from releases.models import MetricChart, ReleasePlan, Safeguard
from releases.plans.queries import FlagPath, get_flag_path
from releases.safeguards.numbers import FROM_ORIGINS, PERCENTILES, WITHOUT, Series, Trusted, compute_number
from releases.safeguards.rules import STEP_SECONDS, TIME_RANGES, TOTALS, narrow_to_environment

PARTS = 60
"""The number of parts of the time since a plan was started."""
_PARTS = f"""
SELECT floor(extract(epoch FROM at - %s::timestamptz) / %s)::int AS part,
       labels, min(kind), sum(value), avg(value), sum(count), max(at)
  FROM projects_impactpoint WHERE name = %s AND at >= %s AND at <= %s
   AND (%s OR {FROM_ORIGINS}) GROUP BY part, labels
"""  # noqa: S608 - constants
_BUCKETS = f"""
SELECT floor(extract(epoch FROM at - %s::timestamptz) / %s)::int AS part,
       labels, bound.key, sum(bound.value::bigint)
  FROM projects_impactpoint, jsonb_each_text(buckets) AS bound
 WHERE name = %s AND at >= %s AND at <= %s
   AND (%s OR {FROM_ORIGINS}) GROUP BY part, labels, bound.key
"""  # noqa: S608 - constants
Numbers = list[float | None]


class Line(NamedTuple):
    """``points``: of an SVG polyline in a box of 100 by 100. ``latest``: its last value, as text."""

    name: str
    points: str
    latest: str
    css: str


class Mark(NamedTuple):
    x: str
    name: str


class Span(NamedTuple):
    """A span of a metric's time, in parts of ``seconds``. ``flag``: the flag whose users are compared, if any.

    ``trusted``: the reports that count; None: all.
    """

    metric: str
    aggregation: str
    labels: Mapping[str, Any]
    begin: datetime
    now: datetime
    seconds: float
    flag: str = ""
    trusted: Trusted | None = None

    @property
    def parts(self) -> int:
        return int((self.now - self.begin).total_seconds() / self.seconds) + 1


class Scale(NamedTuple):
    bottom: float
    top: float

    def place(self, value: float) -> float:
        """Returns the position from the bottom (0) to the top (1)."""
        return (value - self.bottom) / (self.top - self.bottom)


class Chart(NamedTuple):
    """``limit``: its y in pixels, "" if there is none to draw. ``rows``: for users who cannot see the chart."""

    key: str
    name: str
    since: str
    lines: Sequence[Line]
    scale: Scale
    begin: datetime
    rows: Sequence[tuple[datetime, Sequence[str]]]
    marks: Sequence[Mark] = ()
    limit: str = ""
    threshold: str = ""

    @property
    def top(self) -> str:
        return f"{self.scale.top:.3g}"

    @property
    def bottom(self) -> str:
        return f"{self.scale.bottom:.3g}" if self.scale.bottom else ""


def draw_chart(plan: ReleasePlan, safeguard: Safeguard, now: datetime) -> Chart | None:
    """None for queries and alerts, which have no series here, and without reports."""
    if safeguard.source != Safeguard.Source.INTERNAL:
        return None
    started = [milestone.started_at for milestone in plan.milestones.all() if milestone.started_at]
    begin = max(min(started, default=now), now - timedelta(days=30))
    begin = min(begin, now - timedelta(minutes=1))
    chart = draw_watched(safeguard, get_flag_path(plan), begin, now)
    return chart and chart._replace(since="since the plan was started", marks=_marks(plan, begin, now))


def draw_watched(safeguard: Safeguard, path: FlagPath, begin: datetime, end: datetime) -> Chart | None:
    """What a safeguard of a flag watches, in a time of at least a minute. None without reports."""
    seconds = max(60.0, (end - begin).total_seconds() / PARTS)
    flag = path.feature if safeguard.compares else ""
    labels = narrow_to_environment(safeguard.labels, path.environment)
    span = Span(safeguard.metric, safeguard.aggregation, labels, begin, end, seconds, flag)
    span = span._replace(trusted=Trusted(safeguard.frontend, path.project))
    has_limit = not safeguard.compares and safeguard.aggregation not in TOTALS
    chart = _draw(span, safeguard, "", [0.0, *[safeguard.threshold] * has_limit])
    if chart is None:
        return None
    y = f"{148 - 120 * chart.scale.place(safeguard.threshold):.0f}" if has_limit else ""
    return chart._replace(limit=y, threshold=f"{safeguard.threshold:g}")


def draw_metric(chart: MetricChart, now: datetime) -> Chart | None:
    """None without reports."""
    begin, seconds = now - TIME_RANGES[chart.time_range], STEP_SECONDS[chart.time_range]
    return draw_reported(chart, begin, now, seconds, f"of the latest {chart.time_range}")


def draw_reported(
    chart: MetricChart, begin: datetime, end: datetime, seconds: float, since: str
) -> Chart | None:
    """The chart's metric in another time, in parts of ``seconds``. None without reports."""
    span = Span(chart.metric, chart.aggregation, chart.labels, begin, end, seconds)
    return _draw(span, chart, since, [0.0] * (chart.y_axis == "zero"))


def _draw(span: Span, row: Safeguard | MetricChart, since: str, seen: Sequence[float]) -> Chart | None:
    """``seen``: values that are always visible."""
    lines = _read_lines(span)
    values = [value for _, numbers, _ in lines for value in numbers if value is not None]
    if not values:
        return None
    scale = _find_scale([*values, *seen])
    drawn = [
        Line(name, _points(numbers, scale, reach), _latest(numbers), css)
        for (name, numbers, reach), css in zip(lines, ("", "beside"), strict=False)
    ]
    return Chart(row.pk, str(row), since, drawn, scale, span.begin, _rows(lines, span))


def _find_scale(values: Sequence[float]) -> Scale:
    """A scale with space above, and below unless zero is the minimum."""
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or abs(high) * 0.1 or 1.0
    return Scale(low - room if low else 0.0, high + room)


def _marks(plan: ReleasePlan, begin: datetime, now: datetime) -> list[Mark]:
    return [
        Mark(f"{100 * (milestone.started_at - begin) / (now - begin):.1f}%", milestone.name)
        for milestone in plan.milestones.all()
        if milestone.started_at and milestone.started_at >= begin
    ]


def _read_parts(span: Span) -> list[list[Series]]:
    parts: list[list[Series]] = [[] for _ in range(span.parts)]
    where: list[Any] = [span.begin, span.seconds, span.metric, span.begin, span.now]
    where += [span.trusted is None, *(span.trusted or Trusted(frontend=True, project=""))]
    buckets: dict[tuple[int, str], dict[str, int]] = {}
    if span.aggregation in PERCENTILES:
        for part, labels, bound, number in fetch_rows(_BUCKETS, where):
            buckets.setdefault((part, labels), {})[bound] = int(number)
    for part, labels, kind, total, mean, count, latest in fetch_rows(_PARTS, where):
        counts = buckets.get((part, labels), {})
        parts[part].append(Series(orjson.loads(labels), kind, total, mean, int(count), latest, counts))
    return parts


def _read_lines(span: Span) -> list[tuple[str, Numbers, float]]:
    """All lines, or those with and without the flag, and the extent of each, in percent of the span."""

    def compute(name: str, chosen: list[list[Series]]) -> tuple[str, Numbers, float]:
        latest = max((each.latest for part in chosen for each in part), default=span.begin)
        reach = 100 * (latest - span.begin) / (span.now - span.begin)
        found = [compute_number(part, span.aggregation, span.labels, span.seconds) for part in chosen]
        return name, [number.value for number in found], reach

    parts, flag = _read_parts(span), span.flag
    if not flag:
        return [compute("all", parts)]
    having = [[each for each in part if each.labels.get(flag, WITHOUT) != WITHOUT] for part in parts]
    lacking = [[each for each in part if each.labels.get(flag) == WITHOUT] for part in parts]
    return [compute("with the flag", having), compute("without", lacking)]


def _points(numbers: Numbers, scale: Scale, reach: float) -> str:
    """The last part may be longer than its reports, so the line ends with the latest of these."""
    last = max(1, len(numbers) - 1)
    pairs = [
        f"{min(100 * index / last, reach):.1f},{100 - 100 * scale.place(value):.1f}"
        for index, value in enumerate(numbers)
        if value is not None
    ]
    return " ".join(pairs)


def _latest(numbers: Numbers) -> str:
    return next((f"{value:.3g}" for value in reversed(numbers) if value is not None), "none")


def _rows(lines: Sequence[tuple[str, Numbers, float]], span: Span) -> list[tuple[datetime, list[str]]]:
    """About ten of the values."""
    return [
        (
            span.begin + timedelta(seconds=span.seconds * index),
            ["–" if numbers[index] is None else f"{numbers[index]:.3g}" for _, numbers, _ in lines],
        )
        for index in range(0, span.parts, max(1, span.parts // 10))
        if any(numbers[index] is not None for _, numbers, _ in lines)
    ]
