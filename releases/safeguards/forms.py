"""Reads the forms of safeguards, and of charts of impact metrics."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.errors import ValidationError
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.http.fields import Body
from releases.safeguards.serializers import ChartBody, FlagSafeguardBody, SafeguardBody


def read_safeguard(form: Mapping[str, str]) -> dict[str, Any]:
    """Raises ValidationError."""
    return _read(SafeguardBody, _safeguard_of(form) | {"action": {"type": form.get("action", "pause")}})


def read_flag_safeguard(form: Mapping[str, str]) -> dict[str, Any]:
    """Raises ValidationError."""
    return _read(FlagSafeguardBody, _safeguard_of(form))


def read_chart(form: Mapping[str, str]) -> dict[str, Any]:
    """Raises ValidationError."""
    members = {"title": "title", "metricName": "metric", "aggregationMode": "aggregation"}
    members |= {"timeRange": "range", "yAxisMin": "axis"}
    return _read(ChartBody, {member: form[name] for member, name in members.items() if name in form})


def _safeguard_of(form: Mapping[str, str]) -> dict[str, Any]:
    return {
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
    }


def _read(body: type[Body], data: Mapping[str, Any]) -> dict[str, Any]:
    read = body(data=data)
    if not read.is_valid():
        raise ValidationError.of(problems_of(read.errors))
    values: dict[str, Any] = read.validated_data
    return values
