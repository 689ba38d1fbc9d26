"""Stores impact metrics: counters, gauges and histograms that applications record with their SDK.

SDKs report the values recorded since their last report. Counters and histograms are added up; a gauge keeps the last
reported value. The numbers of names, labels and series are limited. Samples that exceed a limit or contradict the kind
of a metric are ignored and counted (``projects.applications.sdk_versions``).
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import orjson
from django.conf import settings

from flagadmin.core.db.statements import execute, fetch_row
from flagadmin.core.db.transactions import stream_rows, transactional
from projects.models import ImpactSeries

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Origin(NamedTuple):
    """The token that reports a sample: its kind, and its projects, sorted, or ``("*",)`` for all.

    The secret of a frontend token is in every browser, so anyone can report with it.
    """

    is_frontend: bool = False
    projects: tuple[str, ...] = ("*",)

    @property
    def id(self) -> str:
        """ "" for backend tokens of all projects."""
        if self == EVERYWHERE:
            return ""
        digest = hashlib.sha256("\n".join(self.projects).encode()).hexdigest()[:32]
        return f"{FRONTEND if self.is_frontend else 'b'}{digest}"

    def narrow(self, kind: str, projects: Iterable[str]) -> "Origin":
        """The origin of a report passed on by a relay with this token: never more than the token itself."""
        named = set(projects)
        own = (
            named if "*" in self.projects else {*self.projects} if "*" in named else named & {*self.projects}
        )
        return Origin(self.is_frontend or kind != "backend", ("*",) if "*" in own else tuple(sorted(own)))


FRONTEND = "f"
"""The prefix of frontend tokens' origin ids."""
EVERYWHERE = Origin()


class Series(NamedTuple):
    """``labels`` is JSON with sorted keys, so that series can be compared."""

    name: str
    labels: str
    origin: Origin = EVERYWHERE

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.labels, self.origin.id


@dataclass(slots=True)
class Sample:
    """``value`` is a counter's or gauge's, or the sum of a histogram.

    ``buckets`` are cumulative counts by upper bound.
    """

    kind: str
    help: str
    value: float = 0.0
    count: int = 0
    buckets: dict[str, int] = field(default_factory=dict)

    def add(self, later: "Sample") -> "Sample":
        """The sum of two samples of a series, or the later one if the kind or buckets differ."""
        if later.kind == GAUGE or later.kind != self.kind or later.buckets.keys() != self.buckets.keys():
            return later
        buckets = {bound: count + self.buckets[bound] for bound, count in later.buckets.items()}
        return Sample(later.kind, later.help, self.value + later.value, self.count + later.count, buckets)


Samples = dict[Series, Sample]


def make_series(name: str, labels: Mapping[str, str], origin: Origin = EVERYWHERE, **forced: str) -> Series:
    text = orjson.dumps({**labels, **forced}, option=orjson.OPT_SORT_KEYS).decode()
    return Series(name, text, origin)


def write_samples(cursor: Any, samples: Samples, *, now: datetime) -> int:
    """Writes the samples that are within the limits. Returns the number of ignored ones."""
    if not samples:
        return 0
    accepted = _keep_within_limits(cursor, samples)
    rows = [
        (*series.key, s.kind, s.help, s.value, s.count, orjson.dumps(s.buckets).decode())
        for series, s in sorted(accepted.items())
    ]
    statement = """
        INSERT INTO projects_impactseries AS known (name, labels, origin, kind, help, value, count, buckets, seen_at)
        SELECT reported.*, %s FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
               %s::float8[], %s::bigint[], %s::jsonb[]) AS reported
        ON CONFLICT (name, labels, origin) DO UPDATE SET
            help = excluded.help, seen_at = greatest(known.seen_at, excluded.seen_at),
            (value, count, buckets) = (SELECT
                CASE WHEN adds THEN known.value + excluded.value ELSE excluded.value END,
                CASE WHEN adds THEN known.count + excluded.count ELSE excluded.count END,
                CASE WHEN adds AND known.buckets <> '{}' THEN (
                    SELECT jsonb_object_agg(t.key, t.value::bigint + (known.buckets ->> t.key)::bigint)
                      FROM jsonb_each_text(excluded.buckets) t) ELSE excluded.buckets END
                FROM (SELECT known.kind <> 'gauge'
                         AND ARRAY(SELECT jsonb_object_keys(known.buckets) ORDER BY 1)
                           = ARRAY(SELECT jsonb_object_keys(excluded.buckets) ORDER BY 1)) AS how (adds))
    """
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        cursor.execute(statement, [now, *columns])
        cursor.execute(ADD_POINTS, [now, *columns[:4], *columns[5:]])
        _write_origins(cursor, {series.origin for series in accepted})
    return len(samples) - len(accepted)


def _write_origins(cursor: Any, origins: Iterable[Origin]) -> None:
    rows = [(each.id, each.is_frontend, list(each.projects)) for each in sorted(origins) if each.id]
    cursor.executemany(
        "INSERT INTO projects_impactorigin (id, is_frontend, projects) VALUES (%s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        rows,
    )


def _keep_within_limits(cursor: Any, samples: Samples) -> Samples:
    """The samples that are within the limits and have the same kind as the stored metric."""
    series = sorted(samples)
    cursor.execute(
        "SELECT name, labels, origin, kind FROM projects_impactseries"
        " JOIN unnest(%s::text[], %s::text[], %s::text[]) AS reported (name, labels, origin)"
        " USING (name, labels, origin)",
        [list(column) for column in zip(*(each.key for each in series), strict=True)],
    )
    stored = {(name, labels, origin): kind for name, labels, origin, kind in cursor.fetchall()}
    accepted = {each: samples[each] for each in series if stored.get(each.key) == samples[each].kind}
    new = [each for each in series if each.key not in stored]
    return (
        accepted | {each: samples[each] for each in _list_with_room(cursor, new, samples)}
        if new
        else accepted
    )


def _list_with_room(cursor: Any, new: list[Series], samples: Samples) -> Iterator[Series]:
    """Yields new series that fit. Frontend tokens have separate limits, so that they cannot displace others."""
    cursor.execute(
        "SELECT name, starts_with(origin, %s) AS is_frontend, min(kind), count(*)"
        " FROM projects_impactseries GROUP BY name, is_frontend",
        [FRONTEND],
    )
    metrics: dict[bool, dict[str, tuple[str, int]]] = {True: {}, False: {}}
    for name, is_frontend, kind, number in cursor.fetchall():
        metrics[is_frontend][name] = kind, number
    for series in new:
        known = metrics[series.origin.is_frontend]
        if series.name not in known and len(known) >= settings.IMPACT_METRICS_LIMIT:
            continue
        kind, number = known.get(series.name, (samples[series].kind, 0))
        if kind == samples[series].kind and number < settings.IMPACT_SERIES_LIMIT:
            known[series.name] = (kind, number + 1)
            yield series


MINUTES_KEPT, HOURS_KEPT = timedelta(days=2), timedelta(days=30)

_ADDED_BUCKETS = """CASE WHEN known.kind = 'histogram' THEN (
    SELECT jsonb_object_agg(t.key, t.value::bigint + coalesce((known.buckets ->> t.key)::bigint, 0))
      FROM jsonb_each_text(excluded.buckets) t) ELSE excluded.buckets END"""
ADD_POINTS = f"""
INSERT INTO projects_impactpoint AS known (name, labels, origin, kind, value, count, buckets, at, is_hour)
SELECT reported.*, date_trunc('minute', %s::timestamptz), false
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::float8[], %s::bigint[], %s::jsonb[]) AS reported
ON CONFLICT (name, at, labels, is_hour, origin) DO UPDATE SET
    value = CASE WHEN known.kind = 'gauge' THEN excluded.value ELSE known.value + excluded.value END,
    count = known.count + excluded.count,
    buckets = coalesce({_ADDED_BUCKETS}, excluded.buckets)
"""  # noqa: S608 - constants
"""Parameters: the time, and the columns of series."""
_ADD_UP = """
WITH minutes AS (
    DELETE FROM projects_impactpoint WHERE NOT is_hour AND at < date_trunc('hour', %s::timestamptz)
    RETURNING name, labels, origin, kind, date_trunc('hour', at) AS hour, value, count, buckets),
counted AS (
    SELECT name, labels, origin, hour, bound.key, sum(bound.value::bigint) AS number
      FROM minutes, jsonb_each_text(buckets) AS bound GROUP BY name, labels, origin, hour, bound.key),
merged AS (
    SELECT name, labels, origin, hour, jsonb_object_agg(key, number) AS buckets
      FROM counted GROUP BY name, labels, origin, hour)
INSERT INTO projects_impactpoint (name, labels, origin, kind, at, is_hour, value, count, buckets)
SELECT name, labels, origin, min(kind), hour, true,
       CASE WHEN min(kind) = 'gauge' THEN avg(value) ELSE sum(value) END, sum(count),
       coalesce((SELECT m.buckets FROM merged m
                  WHERE m.name = minutes.name AND m.labels = minutes.labels AND m.origin = minutes.origin
                   AND m.hour = minutes.hour), '{}')
  FROM minutes GROUP BY name, labels, origin, hour
ON CONFLICT DO NOTHING
"""
_BEYOND = "SELECT at FROM projects_impactpoint ORDER BY at DESC OFFSET %s LIMIT 1"


@transactional
def clean_points(now: datetime) -> None:
    """Adds up the minutes of hours older than two days. Deletes old hours, and the oldest beyond the limit."""
    execute(_ADD_UP, [now - MINUTES_KEPT])
    execute("DELETE FROM projects_impactpoint WHERE at < %s", [now - HOURS_KEPT])
    if beyond := fetch_row(_BEYOND, [settings.IMPACT_POINTS_LIMIT]):
        execute("DELETE FROM projects_impactpoint WHERE at <= %s", beyond)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


def format_impact_metrics() -> str:
    return "".join(f"{line}\n" for line in _format_lines())


def _format_lines() -> Iterator[str]:
    before = ""
    for row in _add_up_origins(stream_rows(ImpactSeries.objects.order_by("name", "labels", "origin"))):
        name = _format_name(row.name)
        if name != before:
            yield f"# HELP {name} {_escape(row.help)}"
            yield f"# TYPE {name} {row.kind}"
            before = name
        labels = {_format_name(key): value for key, value in orjson.loads(row.labels).items()}
        if row.kind != HISTOGRAM:
            yield f"{name}{_format_labels(labels)} {row.value!r}"
            continue
        for bound, count in sorted(row.buckets.items(), key=lambda item: float(item[0])):
            yield f"{name}_bucket{_format_labels(labels | {'le': _format_bound(bound)})} {count}"
        yield f"{name}_sum{_format_labels(labels)} {row.value!r}"
        yield f"{name}_count{_format_labels(labels)} {row.count}"


def _add_up_origins(rows: Iterable[ImpactSeries]) -> Iterator[ImpactSeries]:
    """Yields each series once. A name has one kind: the first origin's, a backend one if there is any."""
    kinds: dict[str, str] = {}
    for (name, _), group in groupby(rows, attrgetter("name", "labels")):
        first, *others = group
        for row in others:
            sample = (
                _make_sample(first).add(_make_sample(row)) if row.kind == first.kind else _make_sample(first)
            )
            first.value, first.count, first.buckets = sample.value, sample.count, sample.buckets
        if kinds.setdefault(name, first.kind) == first.kind:
            yield first


def _make_sample(row: ImpactSeries) -> Sample:
    return Sample(row.kind, row.help, row.value, row.count, row.buckets)


def _format_name(text: str) -> str:
    """A valid label name: flag names are used as labels and may contain other characters."""
    name = _NOT_IN_NAMES.sub("_", text)
    return f"_{name}" if name[:1].isdigit() or not name else name


def _format_bound(text: str) -> str:
    return "+Inf" if math.isinf(float(text)) else text


def _format_labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{key}="{_escape(value, quotes=True)}"' for key, value in labels.items())
    return f"{{{pairs}}}"


def _escape(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
