"""Positions of a line of time, in percent of the plot's width and in pixels of a lane's height."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.lists.charts import format_percent
from projects.flags.insights.evaluations import Evaluations
from projects.flags.lists.people import People
from releases.timeline.past import Span

MAX_LABELS = 12  # of steps in a lane; more would touch
TALL = 150  # pixels


class Step(NamedTuple):
    """A part of the area: ``y`` and ``height`` in pixels; ``text`` is its label, "" if it has none.

    ``change`` says at its dot what changed, by whom and why; ``url`` shows it, ``revert`` takes it back.
    """

    x: str
    width: str
    y: str
    height: str
    text: str
    at: datetime
    share: str
    is_unknown: bool = False
    change: str = ""
    url: str = ""
    revert: str = ""

    @property
    def is_last(self) -> bool:
        return is_last(self.x)

    @property
    def label_y(self) -> str:
        return f"{max(14.0, float(self.y) - 7):.1f}"


def is_last(x: str) -> bool:
    """Whether a label fits only to the left of this position."""
    return float(x.removesuffix("%")) > 88


class Change(NamedTuple):
    """An event, and the number of users whose result it changed, in words, by event and environment."""

    event: AuditEvent
    actor: str
    users: Mapping[tuple[int, str], str]

    def say(self, environment: str, what: str) -> str:
        """``Maria Olsen: 50 % → 10 %, 3,992 of 10,000 users, “Too slow”``"""
        event = self.event
        why = f"“{event.comment}”" if event.comment else ""
        told = filter(None, (what, self.users.get((event.pk, environment), ""), why))
        return f"{self.actor}: {', '.join(told)}"


class Axis(NamedTuple):
    begin: datetime
    end: datetime

    def place(self, at: datetime) -> float:
        return 100 * ((at - self.begin) / (self.end - self.begin))

    def x(self, at: datetime) -> str:
        return f"{min(100.0, max(0.0, self.place(at))):.2f}%"

    def width(self, begin: datetime, end: datetime) -> str:
        return f"{max(0.0, min(100.0, self.place(end)) - max(0.0, self.place(begin))):.2f}%"


class Future(NamedTuple):
    """A step that a plan takes by itself, at the earliest."""

    at: datetime
    people: People
    name: str


def draw_past(
    environment: str,
    spans: Sequence[Span],
    changes: Mapping[tuple[datetime, str], Change],
    axis: Axis,
    height: int,
    *,
    is_tall: bool,
    back: str,
) -> Iterator[Step]:
    labels = len(spans) <= MAX_LABELS
    before = ""
    for span in spans:
        step = _draw_area(span.begin, span.end, span.people, axis, height)
        text = step.share
        found = changes.get((span.begin, environment)) or changes.get((span.begin, ""))
        event = found.event if found else None
        changed = f"{before} → {text}" if before else text
        if found is not None:
            changed = found.say(environment, changed)
        is_wide = axis.place(span.end) - axis.place(span.begin) > 4
        yield step._replace(
            text=text if labels and is_tall and is_wide else "",
            change=changed if before else "",
            url=f"{reverse('activity')}?{urlencode({'change': event.pk})}" if event else "",
            revert=f"{reverse('change-revert', args=[event.pk])}?{urlencode({'flag': event.feature, 'next': back})}"
            if event
            else "",
        )
        before = text


def draw_ahead(
    last: People, ahead: Sequence[Future], axis: Axis, now: datetime, height: int
) -> Iterator[Step]:
    """What continues, and what a plan does next."""
    states = [Future(now, last, ""), *ahead]
    for index, state in enumerate(states):
        end = states[index + 1].at if index + 1 < len(states) else axis.end
        step = _draw_area(state.at, end, state.people, axis, height)
        yield step._replace(text=step.share if index and height == TALL else "")


def _draw_area(begin: datetime, end: datetime, people: People | None, axis: Axis, height: int) -> Step:
    share = 0.0 if people is None else people.on + people.unknown
    tall = height * share / 100
    is_unknown = people is not None and people.unknown > 0
    return Step(
        axis.x(begin),
        axis.width(begin, end),
        f"{height - tall:.1f}",
        f"{tall:.1f}",
        "",
        begin,
        say_share(people, ""),
        is_unknown,
    )


def draw_measured(measured: Evaluations, axis: Axis, now: datetime) -> Iterator[str]:
    """Points of polylines in a box of 1000 by 100, without days on which nothing was evaluated."""
    line: list[str] = []
    for count in measured.counts:
        total = count.yes + count.no
        noon = min(count.at + timedelta(hours=12), now)
        if not total or not axis.begin <= noon:
            if len(line) > 1:
                yield " ".join(line)
            line = []
            continue
        line.append(f"{10 * axis.place(noon):.1f},{100 - 100 * count.yes / total:.2f}")
    if len(line) > 1:
        yield " ".join(line)


def say_share(people: People | None, unknown: str) -> str:
    if people is None:
        return unknown
    if people.unknown:
        return "Can't tell"
    return format_percent(people.on) if people.on else "Off"
