"""Charts of impact metrics as the API shows them, in the reference server's shape."""

from typing import Any

from releases.models import MetricChart
from releases.safeguards.rules import STEPS


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
