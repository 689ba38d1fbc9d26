"""Adds charts of impact metrics to a flag or to the installation, changes and removes them."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.record import Event, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import ValidationError
from groups.access import Caller
from groups.permissions import Permission
from projects.access import access_flag_for_update
from projects.models import Flag
from releases.models import MetricChart
from releases.safeguards.documents import chart_document
from releases.safeguards.queries import find_chart, read_charts
from releases.safeguards.rules import MAX_CHARTS

UPDATE = Permission.UPDATE_FEATURE
Owner = tuple[str, str]
"""The project and name of a flag."""


@transactional
def set_chart(owner: Owner | None, values: Mapping[str, Any], *, caller: Caller) -> MetricChart:
    """Adds a chart, or changes the one with the id. Raises NotFound, NoAccess, ValidationError."""
    flag = _access(owner, caller)
    if key := values.get("id"):
        chart = find_chart(flag, key)
        before = chart_document(chart)
    else:
        if read_charts(flag).count() >= MAX_CHARTS:
            raise ValidationError(f"There are {MAX_CHARTS} charts, the most there can be. Remove one first.")
        chart, before = MetricChart(flag=flag), None
    chart.title, chart.metric, chart.y_axis = values["title"], values["metricName"], values["yAxisMin"]
    chart.aggregation, chart.time_range = values["aggregationMode"], values["timeRange"]
    chart.labels = values["labelSelectors"]
    chart.save()
    _record(EventType.METRIC_CHART_CHANGED, chart, caller, before=before, after=chart_document(chart))
    return chart


@transactional
def remove_chart(owner: Owner | None, key: str, *, caller: Caller) -> None:
    """Raises NotFound, NoAccess."""
    chart = find_chart(_access(owner, caller), key)
    before = chart_document(chart)
    chart.delete()
    _record(EventType.METRIC_CHART_DELETED, chart, caller, before=before)


def _access(owner: Owner | None, caller: Caller) -> Flag | None:
    if owner is None:
        caller.check(Permission.ADMIN)
        return None
    return access_flag_for_update(caller, *owner, UPDATE)


def _record(
    kind: EventType, chart: MetricChart, caller: Caller, *, before: Any = None, after: Any = None
) -> None:
    flag = chart.flag
    event = Event(
        type=kind,
        project=flag.project_id if flag else None,
        feature=flag.name if flag else None,
        subject=str(chart),
        before=before,
        after=after,
    )
    record(event, actor=caller)
