"""Validates safeguards, describes them in words, and selects series by labels."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from flagadmin.core.errors import Problem, ValidationError
from releases.models import Safeguard

MAX_SAFEGUARDS = 10
"""The maximum number of safeguards of a plan, and of a flag in an environment."""
MAX_CHARTS = 20
"""The maximum number of charts of a flag, and of the installation."""
TIME_RANGES: Mapping[str, timedelta] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
}
STEPS: Mapping[str, str] = {"hour": "1m", "day": "15m", "week": "3h", "month": "1d"}
"""The distance between the points of a chart."""
STEP_SECONDS: Mapping[str, float] = {"hour": 60.0, "day": 900.0, "week": 10_800.0, "month": 86_400.0}
TOTALS = frozenset({"count", "sum"})
"""Aggregations that grow with the counted time."""
AGGREGATIONS: Mapping[str, str] = {
    "rps": "rate per second",
    "count": "count",
    "avg": "average",
    "sum": "sum",
    "p50": "median",
    "p95": "95th percentile",
    "p99": "99th percentile",
}
"""The words that forms show."""


def check_room(number: int, owner: str) -> None:
    """Raises ValidationError if there is no room for one more."""
    if number >= MAX_SAFEGUARDS:
        raise ValidationError(f"{owner} has {MAX_SAFEGUARDS} safeguards, the most there can be.")


def safeguard_problems(values: Mapping[str, Any]) -> Iterator[Problem]:
    metric, trigger = values["impactMetric"], values.get("triggerCondition")
    source = metric["source"]
    if source != "alert" and trigger is None:
        yield Problem("triggerCondition", "This field is required.")
    if trigger is not None and not math.isfinite(trigger["threshold"]):
        yield Problem("triggerCondition.threshold", "must be a finite number")
    if metric["comparesWithout"] and source != "internal":
        yield Problem("impactMetric.comparesWithout", "only impact metrics of SDKs can be compared")
    if metric.get("includesFrontend") and source != "internal":
        yield Problem(
            "impactMetric.includesFrontend", "only impact metrics of SDKs come from frontend tokens"
        )


def narrow_to_environment(wanted: Mapping[str, Sequence[str]], environment: str) -> dict[str, Sequence[str]]:
    """Adds the environment whose tokens have reported, unless the labels name it themselves."""
    return {"environment": [environment], **wanted}


def selects(wanted: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> bool:
    """Whether each selected label has one of its values. `*` matches any."""
    return all(
        name in labels and ("*" in values or labels[name] in values) for name, values in wanted.items()
    )


def describe_safeguard(safeguard: Safeguard) -> str:
    """``avg of errors over an hour, only with appName web-shop, must not be above 3``."""
    if safeguard.source == Safeguard.Source.ALERT:
        return f"alert {safeguard.metric}{describe_labels(safeguard.labels)} must not fire"
    side = "above" if safeguard.operator == ">" else "below"
    limit = f"must not be {side} {safeguard.threshold:g}"
    if safeguard.source == Safeguard.Source.EXTERNAL:
        return f"query {safeguard.metric} {limit}"
    article = "an" if safeguard.time_range == "hour" else "a"
    what = f"{safeguard.aggregation} of {safeguard.metric} over {article} {safeguard.time_range}"
    compared = ", less that of users without the flag," if safeguard.compares else ""
    counted = ", with reports of frontend tokens," if safeguard.frontend else ""
    return f"{what}{describe_labels(safeguard.labels)}{compared}{counted} {limit}"


def describe_labels(labels: Mapping[str, Sequence[str]]) -> str:
    """``, only with appName web-shop or app and severity page,``; "" for any."""
    chosen = [f"{name} {' or '.join(values)}" for name, values in sorted(labels.items())]
    return f", only with {' and '.join(chosen)}," if chosen else ""
