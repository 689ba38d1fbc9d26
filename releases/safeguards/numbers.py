"""Reads what impact metrics come to over a time: from the stored points, or from the Prometheus of the settings.

Prometheus is asked with one request, bounded in time and size, and redirects are refused.
"""

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import requests
from django.conf import settings

from flagadmin.core.db.statements import fetch_rows
from flagadmin.core.http.json_bodies import parse_json
from flagadmin.core.http.outside import AnswerTooLarge, bound, read_bounded
from projects.applications.impact_metrics import COUNTER, HISTOGRAM
from projects.models import ImpactSeries
from releases.safeguards.rules import selects

WITHOUT = "disabled"
"""SDKs' label value for users without a flag."""
FROM_ORIGINS = """(origin = '' OR origin IN (
    SELECT id FROM projects_impactorigin
     WHERE (%s OR NOT is_frontend) AND ('*' = ANY(projects) OR %s = ANY(projects))))"""
"""Parameters: whether frontend tokens count, and the project that tokens must be able to read."""
_TOTALS = f"""
SELECT labels, min(kind), sum(value), avg(value), sum(count), max(at)
  FROM projects_impactpoint WHERE name = %s AND at >= %s AND at <= %s AND {FROM_ORIGINS} GROUP BY labels
"""  # noqa: S608 - constants
_BUCKETS = f"""
SELECT labels, bound.key, sum(bound.value::bigint)
  FROM projects_impactpoint, jsonb_each_text(buckets) AS bound
 WHERE name = %s AND at >= %s AND at <= %s AND {FROM_ORIGINS} GROUP BY labels, bound.key
"""  # noqa: S608 - constants
MAX_OFFERED = 100
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class Trusted(NamedTuple):
    """The reports that count: from tokens that may read the project, with or without frontend tokens."""

    frontend: bool
    project: str


class Series(NamedTuple):
    labels: Mapping[str, str]
    kind: str
    total: float
    mean: float
    observed: int
    latest: datetime
    buckets: Mapping[str, int]


class Number(NamedTuple):
    """The value of a metric, and its last report. None: no report, or no valid value."""

    value: float | None
    latest: datetime | None


def list_metrics() -> list[str]:
    """The names of reported impact metrics, as suggestions."""
    names = ImpactSeries.objects.order_by("name").values_list("name", flat=True)
    return list(names.distinct()[:MAX_OFFERED])


def read_series(
    name: str, since: datetime, until: datetime, trusted: Trusted, *, with_buckets: bool
) -> list[Series]:
    """The series of a metric with reports in this time, added up. One or two queries."""
    where = [name, since, until, *trusted]
    rows = fetch_rows(_TOTALS, where)
    buckets: dict[str, dict[str, int]] = {}
    if with_buckets:
        for labels, bound, number in fetch_rows(_BUCKETS, where):
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
    """A percentile by linear interpolation within a bucket, as in Prometheus. None without buckets."""
    bounds: dict[float, int] = {}
    for each in chosen:
        for text, number in each.buckets.items():
            bounds[float(text)] = bounds.get(float(text), 0) + number
    counts = sorted(bounds.items())
    if not counts or counts[-1][1] == 0:
        return None
    rank, lower, below = share * counts[-1][1], 0.0, 0
    for upper, number in counts:
        if number >= rank and number > below:
            if upper == float("inf"):
                return lower
            return lower + (upper - lower) * (rank - below) / (number - below)
        lower, below = upper, number
    return lower


CONNECT_SECONDS, READ_SECONDS = 2.0, 5.0
MAX_BYTES = 1_000_000


class PrometheusError(Exception):
    """No number could be read. The message gives the reason."""


def ask_prometheus(query: str, now: datetime) -> float | None:
    """The result of an instant query, which must be one number. None if there is no data. Raises PrometheusError."""
    if not settings.PROMETHEUS_URL:
        raise PrometheusError("No Prometheus is configured (FLAGADMIN_PROMETHEUS_URL).")
    body = _ask(query, now)
    if not isinstance(body, dict) or body.get("status") != "success":
        raise PrometheusError(f"Prometheus refuses the query: {str(_member(body, 'error'))[:200]}")
    return _read_number(body.get("data"))


def _ask(query: str, now: datetime) -> Any:
    until = time.monotonic() + READ_SECONDS
    try:
        with (
            bound(requests.Session()) as session,
            session.get(
                f"{settings.PROMETHEUS_URL.rstrip('/')}/api/v1/query",
                params={"query": query, "time": f"{now.timestamp():.3f}", "timeout": f"{READ_SECONDS:g}s"},
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as answer,
        ):
            if answer.is_redirect:
                raise PrometheusError("Prometheus answers with a redirect, which is not followed.")
            content = read_bounded(answer, max_bytes=MAX_BYTES, until=until)
    except AnswerTooLarge as error:
        raise PrometheusError("Prometheus answers with more than 1 MB.") from error
    except requests.RequestException as error:
        raise PrometheusError(f"Prometheus cannot be reached ({type(error).__name__}).") from error
    try:
        return parse_json(content)
    except Exception as error:
        raise PrometheusError("Prometheus answers with something else than JSON.") from error


def _member(body: Any, name: str) -> Any:
    return body.get(name, "") if isinstance(body, dict) else ""


def _read_number(data: Any) -> float | None:
    try:
        if data["resultType"] == "scalar":
            value = float(data["result"][1])
        else:
            if not data["result"]:
                return None
            [row] = data["result"]
            value = float(row["value"][1])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise PrometheusError("The query must have one number as its result.") from error
    return None if math.isnan(value) else value
