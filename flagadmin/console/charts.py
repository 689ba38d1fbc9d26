"""Bar charts of a rollout and of the weights of variants.

SVG coordinates are percentages, because the content security policy forbids ``style`` and text must not be
scaled.
"""

from dataclasses import dataclass

from playground.engine.explanation import RolloutExplanation, VariantExplanation

SHADES = 5
ROOM_FOR_NAME = 14  # per cent of the width


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


def rollout_bar(rollout: RolloutExplanation) -> RolloutBar:
    threshold, bucket = min(max(rollout.threshold, 0), 100), rollout.bucket
    turns_on = ""
    if bucket is not None and not rollout.inside and rollout.field is not None:
        turns_on = f"It turns on when the rollout reaches {bucket} %."
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


def variant_bar(variant: VariantExplanation) -> VariantBar:
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
