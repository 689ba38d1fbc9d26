"""Stores impact metrics: counters, gauges and histograms that applications record with their SDK.

SDKs report what was recorded since their last report. Counters and histograms are added up; a gauge keeps the
last reported value. The numbers of names, labels and series are limited. Samples that exceed a limit or
contradict the kind of a metric are ignored and counted (``projects.applications.report_limits``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from django.conf import settings

from projects.applications.impact_points import ADD_POINTS

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Series(NamedTuple):
    """``labels`` is JSON with sorted keys, so that series can be compared."""

    name: str
    labels: str


@dataclass(slots=True)
class Sample:
    """``value`` is that of a counter or gauge, or the sum of a histogram.

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


def make_series(name: str, labels: Mapping[str, str], **forced: str) -> Series:
    return Series(name, orjson.dumps({**labels, **forced}, option=orjson.OPT_SORT_KEYS).decode())


def write_samples(cursor: Any, samples: Samples, *, now: datetime) -> int:
    """Writes the samples that are within the limits. Returns the number of ignored ones."""
    if not samples:
        return 0
    accepted = _keep_within_limits(cursor, samples)
    rows = [
        (*series, s.kind, s.help, s.value, s.count, orjson.dumps(s.buckets).decode())
        for series, s in sorted(accepted.items())
    ]
    statement = """
        INSERT INTO projects_impactseries AS known (name, labels, kind, help, value, count, buckets, seen_at)
        SELECT reported.*, %s FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[],
               %s::float8[], %s::bigint[], %s::jsonb[]) AS reported
        ON CONFLICT (name, labels) DO UPDATE SET
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
        cursor.execute(ADD_POINTS, [now, *columns[:3], *columns[4:]])
    return len(samples) - len(accepted)


def _keep_within_limits(cursor: Any, samples: Samples) -> Samples:
    """The samples that are within the limits and have the same kind as the stored metric."""
    series = sorted(samples)
    cursor.execute(
        "SELECT name, labels, kind FROM projects_impactseries JOIN unnest(%s::text[], %s::text[])"
        " AS reported (name, labels) USING (name, labels)",
        [[each.name for each in series], [each.labels for each in series]],
    )
    stored = {Series(name, labels): kind for name, labels, kind in cursor.fetchall()}
    accepted = {each: samples[each] for each, kind in stored.items() if samples[each].kind == kind}
    new = [each for each in series if each not in stored]
    return (
        accepted | {each: samples[each] for each in _list_with_room(cursor, new, samples)}
        if new
        else accepted
    )


def _list_with_room(cursor: Any, new: list[Series], samples: Samples) -> Iterator[Series]:
    cursor.execute("SELECT name, min(kind), count(*) FROM projects_impactseries GROUP BY name")
    metrics = {name: (kind, number) for name, kind, number in cursor.fetchall()}
    for series in new:
        if series.name not in metrics and len(metrics) >= settings.IMPACT_METRICS_LIMIT:
            continue
        kind, number = metrics.get(series.name, (samples[series].kind, 0))
        if kind == samples[series].kind and number < settings.IMPACT_SERIES_LIMIT:
            metrics[series.name] = (kind, number + 1)
            yield series
