"""The lanes of a flag's line of time, with positions in percent of the plot's width."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.db.models import Q
from django.utils.dateparse import parse_datetime

from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.engine.definitions import FlagDefinition
from playground.saved_contexts.expectations import read_stored_flags
from projects.console import flag_url
from projects.definitions import Definitions
from projects.flags.flag_document import FlagInEnvironment
from projects.flags.insights.evaluations import Evaluations, read_evaluations_by_day
from projects.flags.lists.cells import People
from projects.history.changes import find_actors, make_actor, users_changed
from projects.history.queries import readable_events
from projects.models import Flag
from releases.models import ReleasePlan
from releases.plans.queries import name_steps
from releases.plans.view import PlanView
from releases.requests.queries import Mark
from releases.safeguards.chart import Chart
from releases.timeline.draw import (
    MAX_LABELS,
    TALL,
    Axis,
    Change,
    Future,
    Span,
    Step,
    draw_ahead,
    draw_measured,
    draw_past,
    is_last,
    measure_flag,
    read_spans,
    say_share,
)

SPANS = {"7d": ("7 days", timedelta(days=7)), "8w": ("8 weeks", timedelta(weeks=8)), "all": ("All", None)}
USUAL = "8w"
LOW, FOLDED = 44, 28  # pixels
MANY = 6  # lanes, above which all but production are folded
TICKS = 6
LEAST = timedelta(hours=1)


class Asked(NamedTuple):
    """A request: ``x`` is its time, or just after now."""

    x: str
    mark: Mark

    @property
    def is_last(self) -> bool:
        return is_last(self.x)


class Metric(NamedTuple):
    """A safeguard's chart in the axis of the lanes. ``limit``: its y in pixels, "" without one."""

    chart: Chart
    x: str
    width: str
    limit: str


class Lane(NamedTuple):
    """An environment. ``share``: that of the shown moment, in words. ``points``: lines of measured shares."""

    place: FlagInEnvironment
    name: str
    number: int
    is_main: bool
    height: int
    share: str
    why: str
    plan: str
    view: PlanView | None
    steps: Sequence[Step]
    ahead: Sequence[Step]
    points: Sequence[str]
    asked: Sequence[Asked]
    metrics: Sequence[Metric]
    is_held: bool
    sentence: str


class Tick(NamedTuple):
    x: str
    at: datetime
    url: str


class TimeLine(NamedTuple):
    """``at``: the chosen past or future moment, None for now; ``at_x`` is its position. ``begin`` and ``end`` are the
    first and the last moment of the plot, as text. ``table_url``: with the steps as a table, or without it.
    """

    lanes: Sequence[Lane]
    ticks: Sequence[Tick]
    now_x: str
    at: datetime | None
    at_x: str
    back: str
    table_url: str
    is_table: bool
    segments: Sequence[tuple[str, str, None, bool]]
    begin: str
    end: str


def read_at(query: Mapping[str, str], name: str = "at") -> datetime | None:
    """The moment in ``?at=``; None without a readable one."""
    try:
        parsed = parse_datetime(query.get(name, ""))
        return parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def make_time_line(
    flag: Flag,
    places: Sequence[FlagInEnvironment],
    plans: Mapping[str, PlanView],
    marks: Sequence[Mark],
    query: Mapping[str, str],
    *,
    now: datetime,
    caller: Caller,
) -> TimeLine:
    """``places`` in the order of the cards. About twelve queries, and those of running plans."""
    chosen = query.get("span", USUAL) if query.get("span") in SPANS else USUAL
    length = SPANS[chosen][1]
    age = max(now - flag.created_at, LEAST)
    since = now - min(length, age * 1.05) if length else now - age * 1.05
    ahead = (
        {}
        if flag.is_archived
        else {place.name: list(list_ahead(flag, plans.get(place.name))) for place in places}
    )
    until = max(
        [step.at for steps in ahead.values() for step in steps] + [mark.at for mark in marks if mark.at],
        default=now,
    )
    future = (until - now) * 1.15 if until > now else (now - since) / 15
    axis = Axis(since, now + min(future, (now - since) * 0.6) if until > now else now + future)
    environments = [place.name for place in places]
    spans = read_spans(flag, environments, since, now)
    measured = read_evaluations_by_day(flag.pk, environments, days=min(90, (now - since).days + 1), now=now)
    at = read_at(query)
    if at is not None and not axis.begin <= at <= axis.end:
        at = None
    changes = _read_changes(flag, spans, caller=caller)
    lanes = [
        _make_lane(
            place,
            number,
            spans[place.name],
            ahead.get(place.name, []),
            plans.get(place.name),
            [mark for mark in marks if mark.environment == place.name],
            measured[place.name],
            changes,
            axis,
            now,
            at,
            folded=len(places) > MANY,
            back=flag_url(flag.project_id, flag.name),
        )
        for number, place in enumerate(places, 1)
    ]
    if flag.is_archived and at is None:
        lanes = [lane._replace(share="Off", why="") for lane in lanes]
    keep = {key: query[key] for key in ("span", "environment") if query.get(key)}
    is_table = bool(query.get("table"))
    return TimeLine(
        lanes,
        list(make_ticks(axis, now, keep)),
        axis.x(now),
        at,
        axis.x(at) if at else "",
        f"?{urlencode(keep)}",
        f"?{urlencode(keep if is_table else {**keep, 'table': 'yes'})}#time",
        is_table,
        [
            (label, f"?{urlencode({**keep, 'span': key})}", None, key == chosen)
            for key, (label, _) in SPANS.items()
        ],
        iso(axis.begin) or "",
        iso(axis.end) or "",
    )


def list_ahead(flag: Flag, view: PlanView | None) -> Iterator[Future]:
    """The next steps of a running plan, measured."""
    for at, step, read in read_steps_ahead(flag, view):
        assert view is not None
        people = measure_flag(view.plan.environment_id, read, read.by_name()[flag.name])
        yield Future(at, people, step)


def read_steps_ahead(flag: Flag, view: PlanView | None) -> Iterator[tuple[datetime, str, Definitions]]:
    """The next steps of a running plan: the earliest start, the name, and the flag with its parents then, with the
    plan's strategies replaced by the milestone's.
    """
    if view is None or view.plan.state != ReleasePlan.State.RUNNING:
        return
    read = read_stored_flags([flag.project_id], view.plan.environment_id, {flag.name})
    own, stored = set(map(str, view.plan.strategy_ids)), read.by_name()[flag.name]
    for station in view.stations:
        if station.is_past or station.is_active or station.at is None:
            continue
        others = [strategy for strategy in stored["strategies"] if strategy["id"] not in own]
        strategies: Any = [*others, *station.milestone.strategies]
        then: FlagDefinition = {**stored, "strategies": strategies}
        flags = [then if each is stored else each for each in read.flags]
        yield station.at, station.milestone.name, Definitions(flags, read.segments)


def _read_changes(
    flag: Flag, spans: Mapping[str, Sequence[Span]], *, caller: Caller
) -> dict[tuple[datetime, str], Change]:
    """The flag's events at the times when its share changed, by time and environment. Three queries."""
    times = {span.begin for listed in spans.values() for span in listed[1:]}
    here = Q(feature=flag.name, created_at__in=times)
    events = list(
        readable_events(caller)
        .filter(here, project=flag.project_id)
        .defer("before", "after", "earlier")
        .order_by("-pk")
    )
    users = {
        (pk, place["environment"]): f"{place['changed']:,} of {place['users']:,} users"
        for pk, places in users_changed(events).items()
        for place in places
        if place["changed"]
    }
    people = find_actors(events)
    return {
        (event.created_at, event.environment or ""): Change(event, make_actor(event, people).name, users)
        for event in events
    }


def _make_lane(
    place: FlagInEnvironment,
    number: int,
    spans: Sequence[Span],
    ahead: Sequence[Future],
    view: PlanView | None,
    marks: Sequence[Mark],
    measured: Evaluations,
    changes: Mapping[tuple[datetime, str], Change],
    axis: Axis,
    now: datetime,
    at: datetime | None,
    *,
    folded: bool,
    back: str,
) -> Lane:
    cell, is_main = place.cell, place.production
    height = TALL if is_main and not (folded and number > 1) else FOLDED if folded else LOW
    steps = list(draw_past(cell.environment, spans, changes, axis, height, is_tall=height == TALL, back=back))
    shown = cell.text
    if at is not None:
        shown = say_share(_find_people(spans, ahead, at), cell.text)
    last = spans[-1].people if spans else None
    future = list(draw_ahead(last, ahead, axis, now, height)) if last else []
    is_started = (
        view is not None and view.plan.active is not None and view.plan.state != ReleasePlan.State.DONE
    )
    return Lane(
        place=place,
        name=cell.environment,
        number=number,
        is_main=is_main,
        height=height,
        share=shown,
        why="" if at else cell.why,
        plan=_name_plan(view) if view and is_started else "",
        view=view if is_started else None,
        steps=steps,
        ahead=future,
        points=list(draw_measured(measured, axis, now)) if height == TALL else [],
        asked=[Asked(axis.x(mark.at or now + (axis.end - now) / 3), mark) for mark in marks],
        metrics=[place_chart(chart, axis, now) for chart in view.charts] if view and is_started else [],
        is_held=bool(view and is_started and view.plan.state == ReleasePlan.State.PAUSED),
        sentence=_say_lane(cell.environment, spans, ahead),
    )


def _name_plan(view: PlanView) -> str:
    paused = ", paused" if view.plan.state == ReleasePlan.State.PAUSED else ""
    return f"Plan {name_steps([each.name for each in view.milestones])}, step {view.number}{paused}"


def place_chart(chart: Chart, axis: Axis, until: datetime) -> Metric:
    limit = f"{8 + 60 * (1 - chart.scale.place(float(chart.threshold))):.1f}" if chart.limit else ""
    return Metric(chart, axis.x(chart.begin), axis.width(chart.begin, until), limit)


def _find_people(spans: Sequence[Span], ahead: Sequence[Future], at: datetime) -> People | None:
    for step in reversed(ahead):
        if step.at <= at:
            return step.people
    covering = (span for span in reversed(spans) if span.begin <= at)
    return next((span.people for span in covering), None)


def _say_lane(environment: str, spans: Sequence[Span], ahead: Sequence[Future]) -> str:
    """``production: 5 % from 24 October, 10 % from 7 November; planned 25 % on 2 December``"""
    past = [
        f"{say_share(span.people, 'unknown')} from {span.begin.day} {span.begin:%B}"
        for span in spans[-MAX_LABELS:]
    ]
    planned = [f"{say_share(step.people, '')} on {step.at.day} {step.at:%B}" for step in ahead]
    return f"{environment}: {', '.join(past)}" + (f"; planned {', '.join(planned)}" if planned else "")


def make_ticks(axis: Axis, now: datetime, keep: Mapping[str, str]) -> Iterator[Tick]:
    """Midnights (UTC) in even distances, each a link to that moment; none beside now."""
    days = max(1, round((axis.end - axis.begin).days / TICKS))
    at = axis.begin.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    while at < axis.end:
        if abs(axis.place(at) - axis.place(now)) > 6 and 3 < axis.place(at) < 97:
            yield Tick(axis.x(at), at, f"?{urlencode({**keep, 'at': iso(at)})}")
        at += timedelta(days=days)
