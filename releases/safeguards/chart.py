"""The line chart of a safeguard: its metric since the plan was started, with a mark at each step."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from django.db import connection

from releases.models import ReleasePlan, Safeguard
from releases.safeguards.numbers import PERCENTILES, WITHOUT, Series, compute_number
from releases.safeguards.rules import TOTALS

PARTS = 60
_PARTS = """
SELECT floor(extract(epoch FROM at - %s::timestamptz) / %s)::int AS part,
       labels, min(kind), sum(value), avg(value), sum(count), max(at)
  FROM projects_impactpoint WHERE name = %s AND at >= %s AND at <= %s GROUP BY part, labels
"""


class Line(NamedTuple):
    """``points``: of an SVG polyline in a box of 100 by 100. ``latest``: its last value, as text."""

    name: str
    points: str
    latest: str
    css: str


class Mark(NamedTuple):
    x: str
    name: str


class Chart(NamedTuple):
    safeguard: Safeguard
    lines: Sequence[Line]
    marks: Sequence[Mark]
    limit: str
    """The y of the limit in pixels, "" if there is none to draw."""
    top: str
    begin: datetime
    rows: Sequence[tuple[datetime, Sequence[str]]]

    @property
    def threshold(self) -> str:
        return f"{self.safeguard.threshold:g}"


def draw_chart(plan: ReleasePlan, safeguard: Safeguard, now: datetime) -> Chart | None:
    """None for what has no series here: queries, alerts and percentiles, and without any report."""
    started = [milestone for milestone in plan.milestones.all() if milestone.started_at]
    begin = min((milestone.started_at for milestone in started if milestone.started_at), default=now)
    if safeguard.source != Safeguard.Source.INTERNAL or safeguard.aggregation in PERCENTILES:
        return None
    begin = min(max(begin, now - timedelta(days=30)), now - timedelta(minutes=1))
    seconds = max(60.0, (now - begin).total_seconds() / PARTS)
    parts = _read_parts(safeguard.metric, begin, now, seconds)
    lines = _split(plan, safeguard, parts, seconds)
    values = [value for _, numbers in lines for value in numbers if value is not None]
    if not values:
        return None
    has_limit = not safeguard.compares and safeguard.aggregation not in TOTALS
    top = max([*values, safeguard.threshold if has_limit else 0.0]) * 1.1 or 1.0
    return Chart(
        safeguard,
        [
            Line(name, _points(numbers, top), _latest(numbers), css)
            for (name, numbers), css in zip(lines, ("", "beside"), strict=False)
        ],
        [
            Mark(
                f"{100 * (milestone.started_at - begin) / max(now - begin, timedelta(seconds=1)):.1f}%",
                milestone.name,
            )
            for milestone in started
            if milestone.started_at and milestone.started_at >= begin
        ],
        f"{148 - 120 * safeguard.threshold / top:.0f}" if has_limit else "",
        f"{top:.3g}",
        begin,
        _rows(lines, begin, seconds),
    )


Numbers = list[float | None]


def _read_parts(name: str, begin: datetime, now: datetime, seconds: float) -> list[list[Series]]:
    parts: list[list[Series]] = [[] for _ in range(PARTS + 1)]
    with connection.cursor() as cursor:
        cursor.execute(_PARTS, [begin, seconds, name, begin, now])
        for part, labels, kind, total, mean, count, latest in cursor.fetchall():
            if 0 <= part <= PARTS:
                parts[part].append(Series(orjson.loads(labels), kind, total, mean, int(count), latest, {}))
    return parts


def _split(
    plan: ReleasePlan, safeguard: Safeguard, parts: Sequence[Sequence[Series]], seconds: float
) -> list[tuple[str, Numbers]]:
    """The lines: all, or those with the flag and those without."""

    def compute(chosen: list[list[Series]]) -> Numbers:
        return [
            compute_number(part, safeguard.aggregation, safeguard.labels, seconds).value for part in chosen
        ]

    if not safeguard.compares:
        return [("all", compute([list(part) for part in parts]))]
    flag = plan.flag.name
    having = [[each for each in part if each.labels.get(flag, WITHOUT) != WITHOUT] for part in parts]
    lacking = [[each for each in part if each.labels.get(flag) == WITHOUT] for part in parts]
    return [("with the flag", compute(having)), ("without", compute(lacking))]


def _points(numbers: Numbers, top: float) -> str:
    pairs = [
        f"{100 * index / PARTS:.1f},{100 - 100 * value / top:.1f}"
        for index, value in enumerate(numbers)
        if value is not None
    ]
    return " ".join(pairs)


def _latest(numbers: Numbers) -> str:
    return next((f"{value:.3g}" for value in reversed(numbers) if value is not None), "none")


def _rows(
    lines: Sequence[tuple[str, Numbers]], begin: datetime, seconds: float
) -> list[tuple[datetime, list[str]]]:
    """For who does not see the chart: every sixth value."""
    return [
        (
            begin + timedelta(seconds=seconds * index),
            ["–" if numbers[index] is None else f"{numbers[index]:.3g}" for _, numbers in lines],
        )
        for index in range(0, PARTS + 1, 6)
        if any(numbers[index] is not None for _, numbers in lines)
    ]
