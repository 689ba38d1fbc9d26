"""Validates safeguards."""

import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from flagadmin.core.errors import Problem, ValidationError

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
"""They grow with the time over which they are counted."""
AGGREGATIONS = ("rps", "count", "avg", "sum", "p50", "p95", "p99")


def check_room(number: int, owner: str) -> None:
    """Checks the room for one more. Raises ValidationError."""
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
