"""Reads what impact metrics come to over a time, from the points that are stored of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from flagadmin.core.db.statements import fetch_rows
from projects.applications.impact_metrics import COUNTER, HISTOGRAM
from projects.models import ImpactSeries
from releases.safeguards.labels import selects

WITHOUT = "disabled"
"""The value of a flag's label for users who do not have it: what SDKs report."""
_TOTALS = """
SELECT labels, min(kind), sum(value), avg(value), sum(count), max(at)
  FROM projects_impactpoint WHERE name = %s AND at >= %s AND at <= %s GROUP BY labels
"""
_BUCKETS = """
SELECT labels, bound.key, sum(bound.value::bigint)
  FROM projects_impactpoint, jsonb_each_text(buckets) AS bound
 WHERE name = %s AND at >= %s AND at <= %s GROUP BY labels, bound.key
"""
MAX_OFFERED = 100
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Series(NamedTuple):
    labels: Mapping[str, str]
    kind: str
    total: float
    mean: float
    observed: int
    latest: datetime
    buckets: Mapping[str, int]


class Number(NamedTuple):
    """The value of a metric, and when it was last reported. None: nothing was, or it cannot be told."""

    value: float | None
    latest: datetime | None


def list_metrics() -> list[str]:
    """The names of the impact metrics that are reported, to be offered."""
    names = ImpactSeries.objects.order_by("name").values_list("name", flat=True)
    return list(names.distinct()[:MAX_OFFERED])


def read_series(name: str, since: datetime, until: datetime, *, with_buckets: bool) -> list[Series]:
    """The series of a metric that reported something in this time, added up. One query, or two."""
    rows = fetch_rows(_TOTALS, [name, since, until])
    buckets: dict[str, dict[str, int]] = {}
    if with_buckets:
        for labels, bound, number in fetch_rows(_BUCKETS, [name, since, until]):
            buckets.setdefault(labels, {})[bound] = int(number)
    return [
        Series(orjson.loads(labels), kind, total, mean, int(count), latest, buckets.get(labels, {}))
        for labels, kind, total, mean, count, latest in rows
    ]


def compute_number(
    series: Sequence[Series], aggregation: str, wanted: Mapping[str, Any], seconds: float
) -> Number:
    """Computes the number of the series with these labels."""
    chosen = [each for each in series if selects(wanted, each.labels)]
    if not chosen:
        return Number(None, None)
    latest = max(each.latest for each in chosen)
    if aggregation in PERCENTILES:
        return Number(find_percentile(chosen, PERCENTILES[aggregation]), latest)
    return Number(_aggregate(chosen, aggregation, max(1.0, seconds)), latest)


def _aggregate(chosen: Sequence[Series], aggregation: str, seconds: float) -> float:
    kind = chosen[0].kind
    total = sum(each.total for each in chosen)
    observed = sum(each.observed for each in chosen) if kind == HISTOGRAM else total
    if kind not in (COUNTER, HISTOGRAM):
        means = [each.mean for each in chosen]
        return {"sum": sum(means), "count": float(len(means))}.get(aggregation, sum(means) / len(means))
    if aggregation == "rps":
        return observed / seconds
    if aggregation == "count":
        return observed
    if aggregation == "sum":
        return total
    return total / observed if kind == HISTOGRAM and observed else total / (seconds / 60)


def find_percentile(chosen: Sequence[Series], share: float) -> float | None:
    """Finds a percentile by linear interpolation within a bucket, as Prometheus does. None without buckets."""
    bounds: dict[float, int] = {}
    for each in chosen:
        for text, number in each.buckets.items():
            bounds[float(text)] = bounds.get(float(text), 0) + number
    counts = sorted(bounds.items())
    if not counts or counts[-1][1] == 0:
        return None
    rank, lower, below = share * counts[-1][1], 0.0, 0
    for bound, number in counts:
        if number >= rank and number > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / (number - below)
        lower, below = bound, number
    return lower
