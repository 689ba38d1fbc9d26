"""Positions of a line of time, in percent of the plot's width and in pixels of a lane's height.

Small pictures of the last 14 days in a list of flags: for how many users each was on, in each environment,
as set (areas) and as SDKs measured it (a line).

The share of people for whom a flag was on, from the versions of everything that decides it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.lists.charts import format_percent
from playground.comparison.people import measure_share_on
from playground.engine.definitions import FlagDefinition
from projects.definitions import Definitions
from projects.flag_versions import FlagVersions
from projects.flags.insights.evaluations import Count, Evaluations, read_counts_of_flags
from projects.flags.lists.cells import Cell, FlagRow, People
from projects.flags.lists.strategy_lines import calculate_share
from projects.models import Flag

MAX_MOMENTS = 120
"""Moments at which shares are measured, in all environments together; the latest ones count."""
MIN_MOMENTS = 8
"""The same in each environment, if there are many."""


class Span(NamedTuple):
    """A time in which a flag was on for the same share of people. None: it did not exist, or nothing is known."""

    begin: datetime
    end: datetime
    people: People | None


def read_spans(
    flag: Flag, environments: Sequence[str], since: datetime, now: datetime
) -> dict[str, list[Span]]:
    """The spans of each environment from ``since`` to ``now``, oldest first.

    Seven queries, and one for each evaluated state with other segments than the one before.

    Of more changes than are measured, the oldest count as unknown.
    """
    versions = FlagVersions([flag.pk], since)
    most = max(MIN_MOMENTS, MAX_MOMENTS // max(1, len(environments)))
    spans = {}
    for environment in environments:
        moments = [moment for moment in versions.list_moments(flag.pk, environment) if moment < now]
        measured = [versions.known_since, *moments][-most:]
        people = [_measure(flag, versions, environment, moment) for moment in measured]
        spans[environment] = list(join_spans(map(Span, measured, [*measured[1:], now], people)))
    return spans


def _measure(flag: Flag, versions: FlagVersions, environment: str, at: datetime) -> People | None:
    definition = versions.read([flag.pk], environment, at, with_segments=False).by_name().get(flag.name)
    if definition is None:  # it was archived
        return People(0, 0, 0) if versions.existed(flag.pk, at) else None
    if plain := find_plain_share(definition):
        return plain
    return measure_share_on(environment, versions.read([flag.pk], environment, at), [flag.name])[flag.name]


def measure_flag(environment: str, read: Definitions, definition: FlagDefinition) -> People:
    """The share of people who have a flag of this state. Evaluates nothing if it is what its one strategy says."""
    plain = find_plain_share(definition)
    return plain or measure_share_on(environment, read, [definition["name"]])[definition["name"]]


def find_plain_share(definition: FlagDefinition) -> People | None:
    """The share that the one strategy of the flag sets for everyone; None if an evaluation has to tell."""
    if not definition["enabled"]:
        return People(0, 0, 0)
    enabled = [strategy for strategy in definition["strategies"] if not strategy["disabled"]]
    if not definition["strategies"] and not definition["dependencies"]:
        return People(100, 0, 0)
    if len(enabled) == 1 and not definition["dependencies"]:  # most flags: nothing to evaluate
        [only] = enabled
        share = calculate_share(only["name"], only["parameters"])
        if share is not None and not only["constraints"] and not only["segments"]:
            return People(share, 0, 0)
    return None


def _round(people: People | None) -> tuple[float, float] | None:
    """The shares as they are shown, whether they were measured or read from the one strategy."""
    return None if people is None else (round(people.on, 1), round(people.unknown, 1))


def join_spans(spans: Iterable[Span]) -> Iterator[Span]:
    """Joins successive spans with the same share."""
    last: Span | None = None
    for span in spans:
        if last is not None and _round(last.people) == _round(span.people):
            last = last._replace(end=span.end)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


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


LENGTH = timedelta(days=14)
WIDTH, HEIGHT, LEAST = 84, 22, 2  # of the picture
PIXEL = LENGTH / WIDTH
"""Of several changes in one, only the last state is drawn."""
MAX_STEPS = 12
"""Steps of a picture; the latest ones count."""
MAX_EVALUATIONS = 40
"""Past states of a page that are evaluated, because conditions or parents decide them. Others stay empty."""


class Part(NamedTuple):
    """A rectangle of the picture."""

    x: str
    width: str
    y: str
    height: str
    css: str


class Picture(NamedTuple):
    """``line``: the measured share of each day, as a path; "" without evaluations."""

    parts: Sequence[Part]
    line: str


def draw_pictures(rows: Sequence[FlagRow], now: datetime) -> dict[str, dict[str, Picture]]:
    """The pictures by flag and environment.

    Eight queries for any number of flags, and one for each evaluated state with other segments than the one before.
    """
    active = [row for row in rows if not row.flag.is_archived]
    counts = read_counts_of_flags((row.flag.pk for row in active), now - LENGTH)
    versions = FlagVersions([row.flag.pk for row in active], now - LENGTH)
    measure = _Measure(versions)
    return {
        row.flag.name: {
            place[0].environment: Picture(
                list(_draw(row, place[0], versions, measure, now)),
                _draw_line(counts.get((row.flag.pk, place[0].environment), ()), now),
            )
            for place in row.cells
            if place
        }
        for row in active
    }


class _Measure:
    """Evaluates a bounded number of past states."""

    def __init__(self, versions: FlagVersions) -> None:
        self.versions = versions
        self.left = MAX_EVALUATIONS

    def share(self, row: FlagRow, environment: str, at: datetime) -> People | None:
        name = row.flag.name
        without = self.versions.read([row.flag.pk], environment, at, with_segments=False)
        definition = without.by_name().get(name)
        if definition is None:
            return None
        plain = find_plain_share(definition)
        if plain or not self.left:
            return plain
        self.left -= 1
        return measure_share_on(environment, self.versions.read([row.flag.pk], environment, at), [name])[name]


def _draw(
    row: FlagRow, cell: Cell, versions: FlagVersions, measure: _Measure, now: datetime
) -> Iterator[Part]:
    every = versions.list_moments(row.flag.pk, cell.environment)
    changed = list({(now - at) // PIXEL: at for at in every}.values())[-MAX_STEPS:]
    moments = [versions.known_since, *changed] if len(changed) < MAX_STEPS else changed
    *past, last = moments
    people = [measure.share(row, cell.environment, at) for at in past]
    spans = [*map(Span, past, moments[1:], people), Span(last, now, _read_present(cell))]
    for span in join_spans(spans):
        if span.people is not None and (share := span.people.on + span.people.unknown):
            height = max(LEAST, HEIGHT * share / 100)
            yield Part(
                f"{_place(span.begin, now):.1f}",
                f"{WIDTH * ((span.end - span.begin) / LENGTH):.1f}",
                f"{HEIGHT - height:.1f}",
                f"{height:.1f}",
                "unclear" if span.people.unknown else "set",
            )


def _draw_line(counts: Sequence[Count], now: datetime) -> str:
    """Level on each day, with a gap where nothing was evaluated."""
    line, end = "", None
    for count in counts:
        if not (total := count.yes + count.no):
            continue
        x, y = _place(count.at, now), 1 + (HEIGHT - 2) * count.no / total
        line += f"{f'V{y:.1f}' if count.at == end else f'M{x:.1f} {y:.1f}'}"
        end = count.at + timedelta(days=1)
        line += f"H{_place(end, now):.1f}"
    return line


def _place(at: datetime, now: datetime) -> float:
    """Its x."""
    return min(WIDTH, max(0, WIDTH * (1 - (now - at) / LENGTH)))


def _read_present(cell: Cell) -> People:
    """The same share as beside the picture; a list of names is for a few."""
    if cell.share is not None:
        return People(cell.share, 0, 0)
    return People(0.1, 0, 0) if cell.text == "Targeted list" else People(0, 100, 0)
