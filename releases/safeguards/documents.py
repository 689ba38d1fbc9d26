"""Safeguards and charts of impact metrics as the API shows and takes them, in the reference server's shapes."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.http.timestamps import iso
from releases.models import MetricChart, Safeguard
from releases.safeguards.rules import STEPS


def safeguard_document(safeguard: Safeguard) -> dict[str, Any]:
    return {
        "id": safeguard.pk,
        "title": safeguard.title,
        "action": {"type": safeguard.action, "id": safeguard.plan_id or safeguard.pk},
        "triggerCondition": {"operator": safeguard.operator, "threshold": safeguard.threshold},
        "impactMetric": {
            "id": safeguard.pk,
            "metricName": safeguard.metric,
            "timeRange": safeguard.time_range,
            "aggregationMode": safeguard.aggregation,
            "labelSelectors": safeguard.labels,
            "source": safeguard.source,
            "comparesWithout": safeguard.compares,
        },
        "firingSince": iso(safeguard.firing_since),
    }


def assign_values(safeguard: Safeguard, values: Mapping[str, Any]) -> None:
    """Sets the values without storing anything. Of another alert than before, nothing is known yet."""
    metric = values["impactMetric"]
    heard_of = safeguard.source, safeguard.metric, safeguard.labels
    trigger = values.get("triggerCondition") or {"operator": ">", "threshold": 0}
    safeguard.title, safeguard.source, safeguard.metric = (
        values["title"],
        metric["source"],
        metric["metricName"],
    )
    safeguard.aggregation, safeguard.time_range = metric["aggregationMode"], metric["timeRange"]
    safeguard.labels, safeguard.compares = metric["labelSelectors"], metric["comparesWithout"]
    if heard_of != (safeguard.source, safeguard.metric, safeguard.labels):
        safeguard.firing_since, safeguard.firing = None, []
    safeguard.operator, safeguard.threshold = trigger["operator"], trigger["threshold"]
    default = Safeguard.Action.TURN_OFF if safeguard.plan_id is None else Safeguard.Action.PAUSE
    safeguard.action = (values.get("action") or {}).get("type", default)


def chart_document(chart: MetricChart) -> dict[str, Any]:
    return {
        "id": chart.pk,
        "title": chart.title,
        "displayName": str(chart),
        "metricName": chart.metric,
        "timeRange": chart.time_range,
        "aggregationMode": chart.aggregation,
        "labelSelectors": chart.labels,
        "yAxisMin": chart.y_axis,
        "step": STEPS[chart.time_range],
    }
