"""Draws the steps of a rollout over time: positions in percent of the width, and in pixels of the height."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from django.utils import timezone

from flagadmin.core.errors import AppError
from releases.plans.actions import check_rollouts
from releases.plans.forms import read_rollouts, read_transition
from releases.plans.steps import find_opening

HEIGHT, ROOM = 104, 18  # pixels of 100 %, and above them for a label
AFTER = timedelta(days=1)  # how long the last step is shown at least
MAX_DAYS = 92  # of closed days that are shaded
Step = tuple[int, datetime | None]


class DrawnStep(NamedTuple):
    """``y`` and ``height`` in pixels. ``at``: its earliest time, None for the first step, which is now."""

    rollout: int
    at: datetime | None
    x: float
    width: float
    y: int
    height: int

    @property
    def label_x(self) -> float:
        return self.x + 0.8

    @property
    def label_y(self) -> int:
        return self.y - 6


class Picture(NamedTuple):
    """``closed``: (x, width) of the days on which no step is taken. ``zone``: that of these days."""

    steps: Sequence[DrawnStep]
    closed: Sequence[tuple[float, float]]
    zone: str

    @property
    def height(self) -> int:
        return HEIGHT + ROOM

    @property
    def words(self) -> str:
        """``15 % now, 25 % on 2 Dec``"""
        return ", ".join(
            f"{step.rollout} % {f'on {step.at:%-d %b}' if step.at else 'now'}" for step in self.steps
        )


def plan_picture(rollouts: str, form: Mapping[str, str], *, zone: tzinfo) -> Picture | None:
    """The steps of a form, or of its defaults; None if they cannot be taken."""
    now, steps = timezone.now(), list[Step]()
    try:
        transition = read_transition({"interval": "1440", **{name: form[name] for name in form}})
        check_rollouts(shares := read_rollouts(rollouts))
        at = now
        for number, rollout in enumerate(shares):
            at = find_opening(transition or {}, at) if number else at
            steps.append((rollout, at if number else None))
    except (AppError, OverflowError):
        return None
    return draw_steps(steps, transition, now=now, zone=zone)


def draw_steps(
    steps: Sequence[Step], transition: Mapping[str, Any] | None, *, now: datetime, zone: tzinfo
) -> Picture:
    begins = [at or now for _, at in steps]
    span = begins[-1] - begins[0]
    end = begins[-1] + max(AFTER if span < 4 * AFTER else span / 4, span / 8)
    whole = end - now

    def place(at: datetime) -> float:
        return round(100 * ((at - now) / whole), 2)

    drawn = []
    for (rollout, at), begin, until in zip(steps, begins, [*begins[1:], end], strict=True):
        height = round(HEIGHT * rollout / 100)
        x = place(begin)
        drawn.append(DrawnStep(rollout, at, x, round(place(until) - x, 2), ROOM + HEIGHT - height, height))
    window = (transition or {}).get("window")
    closed = [
        (place(first), round(place(last) - place(first), 2))
        for first, last in _closed(window, now, end, zone)
    ]
    return Picture(drawn, closed, str(zone))


def _closed(
    window: Mapping[str, Any] | None, now: datetime, end: datetime, zone: tzinfo
) -> Iterator[tuple[datetime, datetime]]:
    """The parts of days on which the window is closed all day."""
    if window is None or end - now > timedelta(days=MAX_DAYS):
        return
    day = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    while day < end:
        following = day + timedelta(days=1)
        if day.isoweekday() not in window["days"]:
            yield max(day, now).astimezone(UTC), min(following, end).astimezone(UTC)
        day = following
