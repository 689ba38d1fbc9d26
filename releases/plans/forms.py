"""Reads the forms of release plans: steps, and safeguards."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.error_responses import problems_of
from releases.plans.add import Steps
from releases.safeguards.serializers import SafeguardBody
from releases.templates.rules import is_zone

ROLLOUTS = ("5, 25, 50, 100", "10, 50, 100", "1, 5, 25, 50, 100", "25, 50, 100")
INTERVALS = (
    ("60", "1 hour"),
    ("360", "6 hours"),
    ("1440", "24 hours"),
    ("4320", "3 days"),
    ("10080", "7 days"),
)
WINDOWS = (("", "Any time"), ("1-4", "Mon to Thu, 09:00–16:00"), ("1-5", "Mon to Fri, 09:00–16:00"))
"""The times are of the zone that the form names."""


def read_steps(form: Mapping[str, str], strategy: Mapping[str, Any]) -> Steps:
    """Raises ValidationError."""
    return Steps(strategy, read_rollouts(form.get("rollouts", "")), read_transition(form))


def read_rollouts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace("→", ",").replace("%", "").split(",")]
    except ValueError:
        raise ValidationError.at("rollouts", "must be numbers, such as 5, 25, 50, 100") from None


def read_transition(form: Mapping[str, str]) -> dict[str, Any] | None:
    minutes, window = form.get("interval", ""), form.get("window", "")
    if not minutes.isascii() or not minutes.isdecimal() or len(minutes) > 6:
        raise ValidationError.at("interval", "must be minutes")
    transition: dict[str, Any] = {"intervalMinutes": int(minutes)}
    if window:
        zone = form.get("zone", "") or "UTC"
        days = [1, 2, 3, 4] if window == "1-4" else [1, 2, 3, 4, 5]
        named = zone if is_zone(zone) else "UTC"
        transition["window"] = {"zone": named, "days": days, "from": "09:00", "to": "16:00"}
    return transition


def read_pause(form: Mapping[str, str]) -> dict[str, Any] | None:
    """The safeguard that a plan is to begin with, if the form names a metric. Raises ValidationError."""
    metric, limit = form.get("pause_metric", "").strip(), form.get("pause_above", "").strip()
    if not metric:
        return None
    if not limit:
        raise ValidationError.at("pause_above", f"Say above what {metric} pauses the plan.")
    return read_safeguard({"metric": metric, "threshold": limit})


def read_safeguard(form: Mapping[str, str]) -> dict[str, Any]:
    """Raises ValidationError."""
    body = SafeguardBody(
        data={
            "title": form.get("title", ""),
            "impactMetric": {
                "metricName": form.get("metric", ""),
                "aggregationMode": form.get("aggregation", "avg"),
                "timeRange": form.get("range", "hour"),
                "source": form.get("source", "internal"),
                "comparesWithout": "compares" in form,
            },
            "triggerCondition": {
                "operator": form.get("operator", ">"),
                "threshold": form.get("threshold") or "0",
            },
            "action": {"type": form.get("action", "pause")},
        }
    )
    if not body.is_valid():
        raise ValidationError.of(problems_of(body.errors))
    values: dict[str, Any] = body.validated_data
    return values
