"""Small pictures of the last 14 days in a list of flags: for how many users each was on, in each environment, as set
(areas) and as SDKs measured it (a line).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from playground.comparison.people import measure_share_on
from projects.flag_versions import FlagVersions
from projects.flags.insights.evaluations import Count, read_counts_of_flags
from projects.flags.lists.cells import Cell
from projects.flags.lists.people import People
from projects.flags.lists.rows import FlagRow
from releases.timeline.past import Span, find_plain_share, join_spans

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
