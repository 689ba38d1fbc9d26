"""The geometry of SVG charts. ``flagadmin/core/templatetags/charts.py`` draws them.

Coordinates are percentages or refer to a ``viewBox``, because the content security policy forbids ``style``.
Colors are classes of ``styles/charts.css``. Charts with a ``viewBox`` contain no text, which would be scaled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

SHADES = 5
VARIANT_COLORS = 3  # v1, v2, v3 in styles/variables.css
ROOM_FOR_NAME = 14  # percent of the width
SPARK_WIDTH, SPARK_HEIGHT, SPARK_GAP = 216.0, 34.0, 2.0
SMALLEST = 0.8  # the height of a bar that is not zero


# Evaluations over time --------------------------------------------------------------------------------------


class Counted(Protocol):
    """The evaluations in an hour or on a day."""

    @property
    def at(self) -> datetime: ...
    @property
    def yes(self) -> int: ...
    @property
    def no(self) -> int: ...


@dataclass(frozen=True, slots=True)
class SparkBar:
    """The two rectangles of an hour or day; a height of 0 is not drawn."""

    x: float
    width: float
    yes_y: float
    yes_height: float
    no_y: float
    no_height: float


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Stacked bars, on below and off above, with the numbers that they show."""

    bars: Sequence[SparkBar]
    counts: Sequence[Counted]
    yes: int
    no: int

    @property
    def total(self) -> int:
        return self.yes + self.no


def make_sparkline(counts: Iterable[Counted]) -> Sparkline:
    counts = list(counts)
    largest = max((count.yes + count.no for count in counts), default=0)
    step = (SPARK_WIDTH + SPARK_GAP) / max(1, len(counts))
    bars = [
        _make_spark_bar(count, index * step, step - SPARK_GAP, largest) for index, count in enumerate(counts)
    ]
    return Sparkline(bars, counts, sum(count.yes for count in counts), sum(count.no for count in counts))


def _make_spark_bar(count: Counted, x: float, width: float, largest: int) -> SparkBar:
    yes, no = _measure_height(count.yes, largest), _measure_height(count.no, largest)
    gap = 1.0 if yes and no else 0.0
    if (over := yes + gap + no - SPARK_HEIGHT) > 0:
        yes, no = (yes - over, no) if yes > no else (yes, no - over)
    return SparkBar(
        x=round(x, 1),
        width=round(width, 1),
        yes_y=round(SPARK_HEIGHT - yes, 1),
        yes_height=round(yes, 1),
        no_y=round(SPARK_HEIGHT - yes - gap - no, 1),
        no_height=round(no, 1),
    )


def _measure_height(number: int, largest: int) -> float:
    return max(SMALLEST, number / largest * SPARK_HEIGHT) if number else 0.0


# Shares -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a horizontal bar. ``percent`` refers to the whole; the texts are rounded."""

    name: str
    x: str
    width: str
    percent: str
    color: str
    number: int = 0


def choose_variant_color(index: int) -> str:
    """The color of a variant by its position in the chart. Colors repeat after VARIANT_COLORS."""
    return f"v{index % VARIANT_COLORS + 1}"


def make_slices(numbers: Mapping[str, float]) -> list[Slice]:
    """One bar divided in proportion to the numbers."""
    whole, start, parts = sum(numbers.values()), 0.0, []
    for index, (name, number) in enumerate(numbers.items()):
        width = number / whole * 100 if whole else 0.0
        percent, color = format_percent(width), choose_variant_color(index)
        parts.append(Slice(name, f"{start:.2f}%", f"{width:.2f}%", percent, color, int(number)))
        start += width
    return parts


@dataclass(frozen=True, slots=True)
class VariantSplit:
    """The weights of variants as configured, and how often SDKs reported each; empty without reports."""

    configured: Sequence[Slice]
    measured: Sequence[Slice]
    rows: Sequence[tuple[str, str, str, int]]  # name, configured, measured, number
    total: int


def make_variant_split(weights: Mapping[str, float], measured: Mapping[str, int]) -> VariantSplit:
    """Puts measured names that are not configured last: variants that no longer exist, or "disabled"."""
    names = [*weights, *sorted(measured.keys() - weights.keys())]
    configured = make_slices({name: weights.get(name, 0) for name in names})
    slices_counted = (
        make_slices({name: measured.get(name, 0) for name in names}) if sum(measured.values()) else []
    )
    texts = [part.percent for part in slices_counted] or ["–"] * len(names)
    rows = [
        (part.name, part.percent if part.name in weights else "–", text, measured.get(part.name, 0))
        for part, text in zip(configured, texts, strict=True)
    ]
    return VariantSplit(configured, slices_counted, rows, sum(measured.values()))


@dataclass(frozen=True, slots=True)
class LineBar:
    """One of several horizontal bars below each other. All of them together have a width of 100%."""

    name: str
    number: int
    width: str
    percent: str
    old: bool

    @property
    def is_version(self) -> bool:
        """Whether it stands for one version, as opposed to "3 more"."""
        return not self.name.endswith(" more")


def make_line_bars(numbers: Iterable[tuple[str, int, bool]]) -> list[LineBar]:
    """``numbers``: (name, number, whether to mark it as old)."""
    rows = list(numbers)
    total = sum(n for _, n, _ in rows)
    return [
        LineBar(
            name,
            n,
            f"{n / total * 100 if total else 0:.2f}%",
            format_percent(n / total * 100 if total else 0),
            old,
        )
        for name, n, old in rows
    ]


def format_percent(percent: float) -> str:
    """``50 %``, ``33.3 %``; rounded to 0 or 100 only if it is exactly that."""
    rounded = round(percent, 1)
    if rounded == 0 and percent > 0:
        return "< 0.1 %"
    return "> 99.9 %" if rounded == 100 and percent < 100 else f"{rounded:g} %"


def answer_slices(counts: Sequence[tuple[str, str, float]]) -> list[Slice]:
    """One bar of answers: (name, color, how many) in order."""
    parts = make_slices({name: number for name, _, number in counts})
    return [replace(part, color=color) for part, (_, color, _) in zip(parts, counts, strict=True)]


# The position of a context in a rollout and among the variants ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on a bar, with its label. The anchor keeps the label inside the chart."""

    x: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class RolloutBar:
    """A bar for buckets 1 to 100; the first ``width`` are on. ``bucket`` is None if none was computed."""

    width: str
    limit: Mark
    ends: list[Mark]
    bucket: Mark | None
    inside: bool
    sentence: str
    turns_on: str


@dataclass(frozen=True, slots=True)
class ShareBar:
    x: str
    width: str
    middle: str
    name: str
    percent: str
    shade: int
    chosen: bool
    named: bool


@dataclass(frozen=True, slots=True)
class VariantBar:
    shares: list[ShareBar]
    place: Mark | None
    sentence: str
    chosen: str


def make_rollout_bar(rollout: Any) -> RolloutBar:
    """The bar of a ``playground.engine.explanation.RolloutExplanation``."""
    threshold, bucket = min(max(rollout.threshold, 0), 100), rollout.bucket
    turns_on = ""
    if bucket is not None and not rollout.inside and rollout.field is not None:
        turns_on = f"It turns on when the rollout reaches {bucket} %"
    return RolloutBar(
        width=f"{threshold}%",
        limit=_mark(threshold, f"{rollout.threshold} %"),
        ends=[
            _mark(end, text) for end, text in ((0, "1"), (100, "100")) if abs(end - threshold) > ROOM_FOR_NAME
        ],
        # A random bucket is not shown, because it differs on each evaluation.
        bucket=None if bucket is None or rollout.field is None else _mark(bucket - 0.5, f"bucket {bucket}"),
        inside=rollout.inside,
        sentence=rollout.sentence,
        turns_on=turns_on,
    )


def make_variant_bar(variant: Any) -> VariantBar:
    """The bar of a ``playground.engine.explanation.VariantExplanation``."""
    total = variant.total or 1
    shares = []
    for index, share in enumerate(variant.shares):
        start, width = (share.first - 1) / total * 100, (share.last - share.first + 1) / total * 100
        shares.append(
            ShareBar(
                x=f"{start:.2f}%",
                width=f"{width:.2f}%",
                middle=f"{start + width / 2:.2f}%",
                name=share.name,
                percent=f"{width:.4g} %",
                shade=index % SHADES,
                chosen=share.chosen,
                named=width >= ROOM_FOR_NAME,
            )
        )
    place = None
    if variant.place is not None:
        place = _mark((variant.place - 0.5) / total * 100, f"{variant.place} of {total}")
    return VariantBar(shares, place, variant.sentence, variant.name)


def _mark(percent: float, text: str) -> Mark:
    anchor = "start" if percent < 12 else "end" if percent > 88 else "middle"
    return Mark(f"{percent:.2f}%", anchor, text)
