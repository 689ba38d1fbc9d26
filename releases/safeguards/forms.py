"""Reads the forms of safeguards, and of charts of impact metrics."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from flagadmin.core.errors import ValidationError, clip
from flagadmin.core.http.error_responses import problems_of
from flagadmin.core.http.fields import Body
from releases.models import Safeguard
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
    labels = {"labelSelectors": _read_labels(form)}
    return _read(ChartBody, labels | {member: form[name] for member, name in members.items() if name in form})


def _safeguard_of(form: Mapping[str, str]) -> dict[str, Any]:
    source, threshold = form.get("source", "internal"), form.get("threshold", "").strip()
    if source != Safeguard.Source.ALERT and not threshold:
        raise ValidationError.at("threshold", "Enter a threshold.")
    return {
        "title": form.get("title", ""),
        "impactMetric": {
            "metricName": form.get("metric", ""),
            "aggregationMode": form.get("aggregation", "avg"),
            "timeRange": form.get("range", "hour"),
            "source": source,
            "comparesWithout": "compares" in form,
            "includesFrontend": "frontend" in form,
            "labelSelectors": _read_labels(form),
        },
        "triggerCondition": {
            "operator": form.get("operator", ">"),
            "threshold": _read_limit(threshold) or "0",
        },
    }


def _read_limit(text: str) -> str:
    """``1 %`` is 0.01, because SDKs report rates as numbers from 0 to 1."""
    number, sign, _ = text.rpartition("%")
    try:
        return f"{Decimal(number.strip()).scaleb(-2)}" if sign else text
    except ArithmeticError:
        return text


def _read_labels(form: Mapping[str, str]) -> dict[str, list[str]]:
    """Reads ``appName=web-shop, severity=page``. A label may be named twice. Raises ValidationError."""
    labels: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in form.get("labels", "").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise ValidationError.at(
                "labels", f"must be like appName=web-shop, severity=page, not {clip(part, 64)}"
            )
        labels.setdefault(name, []).append(value)
    return labels


def _read(body: type[Body], data: Mapping[str, Any]) -> dict[str, Any]:
    read = body(data=data)
    if not read.is_valid():
        raise ValidationError.of(problems_of(read.errors))
    values: dict[str, Any] = read.validated_data
    return values
