"""/what-happened/: the changes of an environment, by how many users noticed them, beside a metric."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils import timezone

from flagadmin.console.activity import CURSOR, ChangesPage, Segment
from flagadmin.core.http.responses import iso
from flagadmin.core.lists.filters import FIRST, LAST, PARAMETERS, DateRange, End
from flagadmin.core.lists.pages import Column, Filter, Listing
from groups.access import Caller
from projects.history.noticed import NoticedChange, read_happened
from projects.history.queries import EventFilter
from projects.models import Environment, Project
from releases.models import MetricChart, Safeguard
from releases.safeguards.chart import PARTS, Chart, draw_reported, draw_watched
from releases.safeguards.queries import get_safeguard_path, list_active_in, read_charts
from releases.timeline.draw import Axis
from releases.timeline.view import Metric, place_chart, read_at

HEIGHT, LOWEST = 108, 4  # pixels of the bars
MAX_TICKS = 10
MAX_METRICS = 50
SINCE, UNTIL = "since", "until"
"""The URL parameters of the picked stretch of time, in UTC."""
STEPS = [timedelta(minutes=each) for each in (5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080)]
DAY = timedelta(days=1)


class Stretch(NamedTuple):
    """A picked part of the axis. ``x`` and ``width`` are percentages."""

    since: datetime
    until: datetime
    x: str
    width: str

    @property
    def is_of_days(self) -> bool:
        return self.until - self.since > timedelta(hours=20)

    def covers(self, change: NoticedChange) -> bool:
        return self.since <= change.event.created_at <= self.until


class Bar(NamedTuple):
    """A change in the picture; ``y`` and ``height`` in pixels."""

    change: NoticedChange
    x: str
    y: str
    height: str


class Tick(NamedTuple):
    """``url`` picks the time from this tick to the next one."""

    x: str
    text: str
    url: str


class Alert(NamedTuple):
    x: str
    safeguard: Safeguard


class HappenedPage(ChangesPage):
    """The dates in the URL are shown, by default today. ``since`` and ``until`` pick a stretch of them."""

    template_name = "console/what_happened.html"
    title = "What happened"
    csv_name = "what-happened"
    columns = (
        Column("when", "When", csv=lambda row: iso(row.event.created_at)),
        Column("who", "Who", csv="change.actor.name"),
        Column("what", "What", csv=lambda row: "".join(part.text for part in row.change.sentence)),
        Column("project", "Project", csv="change.project"),
        Column("users", "Users", csv="effect.users"),
        Column("of", "Of", csv=lambda row: row.effect.generated or None),
    )
    chips = ("environment", "project", "person")

    def find(self) -> None:
        super().find()
        self.now = timezone.now()
        if not any(name in self.request.GET for name in PARAMETERS):
            today = End(self.dates.today, None)
            self.dates = DateRange(today, today, self.dates.today, self.dates.zone)
        self.axis = make_axis(self.dates, self.now)
        self.environments = Environment.objects.names()

    def get_filters(self) -> Sequence[Filter]:
        projects = Project.objects.readable_by(self.caller).values_list("id", flat=True)
        return (
            Filter("environment", "Environment", [(name, name) for name in self.environments]),
            Filter("project", "Project", [(project, project) for project in projects]),
            Filter("person", "Person"),
            Filter("all", "Changes", [("yes", "all")]),
        )

    def get_rows(self, values: dict[str, str]) -> Sequence[NoticedChange]:
        self.environment = values["environment"] or next(iter(self.environments), "")
        criteria = EventFilter(
            projects=list(filter(None, [values["project"]])),
            since=self.axis.begin,
            until=self.axis.end,
            person=values["person"],
        )
        self.happened = read_happened(
            self.narrow(criteria), self.environment, everything=bool(values["all"]), caller=self.caller
        )
        return self.happened.changes

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        listing, axis = kwargs["listing"], self.axis
        reverts = self.with_reverts([row.change for row in listing.all_rows])
        rows = [row._replace(change=change) for row, change in zip(listing.all_rows, reverts, strict=True)]
        stretch = read_stretch(self.request, axis)
        picked = [row for row in rows if stretch and stretch.covers(row)]
        others = [row for row in rows if not (stretch and stretch.covers(row))]
        metrics = list_metrics(self.environment, self.caller)
        chosen = choose_metric(metrics, self.request.GET.get("metric", ""), rows)
        return super().get_context_data(
            environment=self.environment,
            project=self.request.GET.get("project", ""),
            happened=self.happened,
            axis=axis,
            zone=str(self.dates.zone),
            ticks=list(make_ticks(axis, self.dates.zone, listing)),
            bars=list(make_bars(rows, axis)),
            height=HEIGHT,
            stretch=stretch,
            unpicked_url=listing.url(**{SINCE: None, UNTIL: None}),
            everything_url=listing.url(all="yes"),
            is_everything="all" in self.request.GET,
            picked=picked,
            most=max(picked, key=lambda row: row.effect.users or 0, default=None),
            days=self.days(others),
            metrics=[(row.pk, str(row), row is chosen) for row in metrics],
            metric=draw_metric(chosen, axis) if chosen else None,
            alerts=list(find_alerts(self.environment, axis, self.caller)),
            **kwargs,
        )

    def ranges(self, listing: Listing) -> Iterator[Segment]:
        """Also the last hour. What is picked stays, as far as it is shown."""
        others = dict.fromkeys((*PARAMETERS, CURSOR))
        hour_ago = (self.now - timedelta(hours=1)).astimezone(self.dates.zone)
        is_open = bool(self.dates.first and self.dates.first.time) and self.dates.last is None
        url = listing.url(**others | {FIRST: f"{hour_ago:%Y-%m-%dT%H:%M}", LAST: None})
        yield "1 hour", url, None, is_open
        yield from super().ranges(listing)


def make_axis(dates: DateRange, now: datetime) -> Axis:
    """From the first to the last moment, or to now, in UTC; at least a minute."""
    until = dates.until or now
    begin = dates.since or min(until, now) - DAY
    end = min(until, now) if begin < now else until
    begin, end = begin.astimezone(UTC), end.astimezone(UTC)  # differences of local times omit clock changes
    return Axis(begin, max(end, begin + timedelta(minutes=1)))


def read_stretch(request: HttpRequest, axis: Axis) -> Stretch | None:
    since, until = (read_at(request.GET, name) for name in (SINCE, UNTIL))
    if since is None or until is None or not axis.begin <= since < until or since > axis.end:
        return None
    return Stretch(since, until, axis.x(since), axis.width(since, until))


def make_ticks(axis: Axis, zone: tzinfo, listing: Listing) -> Iterator[Tick]:
    """Even times of the reader's zone: hours, or days."""
    length = axis.end - axis.begin
    step = next(
        (each for each in STEPS if length / each <= MAX_TICKS), (length // MAX_TICKS // DAY + 1) * DAY
    )
    at = datetime.combine(axis.begin.astimezone(zone).date(), time(), zone)
    while at < axis.end:
        if at > axis.begin and 3 < axis.place(at) < 97:
            text = f"{at:%H:%M}" if step < DAY else f"{at.day} {at:%b}"
            until = min(at + step, axis.end)
            yield Tick(axis.x(at), text, listing.url(**{SINCE: iso(at), UNTIL: iso(until)}))
        at += step


def make_bars(rows: Sequence[NoticedChange], axis: Axis) -> Iterator[Bar]:
    """As high as the share of users in comparison with the largest. Changes that are not counted get a low one."""
    most = max((row.effect.percent for row in rows), default=0) or 1
    for row in rows:
        height = max(LOWEST, HEIGHT * row.effect.percent / most)
        yield Bar(row, axis.x(row.event.created_at), f"{HEIGHT + 8 - height:.1f}", f"{height:.1f}")


# The metric beside it ---------------------------------------------------------------------------------------


def list_metrics(environment: str, caller: Caller) -> list[Safeguard | MetricChart]:
    """What safeguards of readable flags watch there, and the charts of the installation. Two queries."""
    watched = list_active_in(environment, caller).filter(source=Safeguard.Source.INTERNAL)
    return [*watched[:MAX_METRICS], *read_charts(None)]


def choose_metric(
    metrics: Sequence[Safeguard | MetricChart], asked: str, rows: Sequence[NoticedChange]
) -> Safeguard | MetricChart | None:
    """The one that was asked for, or that of a flag that changed, or the first one."""
    changed = {each.event.feature for row in rows for each in row.change.rows}

    def is_of_changed(row: Safeguard | MetricChart) -> bool:
        return isinstance(row, Safeguard) and get_safeguard_path(row).feature in changed

    return next(
        (row for row in metrics if row.pk == asked),
        next(filter(is_of_changed, metrics), next(iter(metrics), None)),
    )


def draw_metric(row: Safeguard | MetricChart, axis: Axis) -> Metric | None:
    """None without reports in this time."""
    chart: Chart | None
    if isinstance(row, Safeguard):
        chart = draw_watched(row, get_safeguard_path(row), axis.begin, axis.end)
    else:
        seconds = max(60.0, (axis.end - axis.begin).total_seconds() / PARTS)
        chart = draw_reported(row, axis.begin, axis.end, seconds, "")
    return chart and place_chart(chart, axis, axis.end)


def find_alerts(environment: str, axis: Axis, caller: Caller) -> Iterator[Alert]:
    """The alerts that safeguards wait for, and that began to fire in this time and still do. One query."""
    watching = list_active_in(environment, caller).filter(source=Safeguard.Source.ALERT)
    for row in watching.filter(firing_since__range=(axis.begin, axis.end))[:MAX_METRICS]:
        yield Alert(axis.x(row.firing_since or axis.end), row)
