"""Finds the safeguards of flags and the charts of impact metrics, and shows them in the reference server's shapes."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Min, Q, QuerySet

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.http.responses import iso
from groups.access import Caller
from projects.models import Flag, ImpactSeries, ProjectEnvironment
from releases.models import MetricChart, Safeguard
from releases.plans.queries import UNFINISHED, FlagPath, get_flag_path
from releases.safeguards.rules import STEPS


def read_safeguards(flag: Flag, environment: str) -> QuerySet[Safeguard]:
    """The safeguards of the flag itself, without its release plan's."""
    return Safeguard.objects.filter(flag=flag, environment=environment).select_related("flag")


def unapproved_safeguards(project_id: str) -> QuerySet[Safeguard]:
    """The project's safeguards that act on active flags without approval, in environments that require one."""
    guarded = ProjectEnvironment.objects.needing_requests().filter(project=project_id)
    safeguards = Safeguard.objects.filter(flag__project=project_id, flag__archived_at=None, approved=False)
    return safeguards.filter(environment__in=guarded.values("environment")).select_related("flag")


def find_flag_safeguard(flag: Flag, environment: str, key: str) -> Safeguard:
    """Raises NotFound."""
    return get_or_404(
        read_safeguards(flag, environment), f"{flag.name} has no safeguard {key} in {environment}.", pk=key
    )


def list_waiting_for_alerts(caller: Caller) -> QuerySet[Safeguard]:
    """Finds the safeguards of active flags, and of their unfinished plans, that wait for an alert."""
    return _list_active(caller).filter(source=Safeguard.Source.ALERT)


def _list_active(caller: Caller) -> QuerySet[Safeguard]:
    flags = Flag.objects.active().readable_by(caller)
    of_plans = Q(plan__flag__in=flags, plan__state__in=UNFINISHED)
    rows = Safeguard.objects.filter(of_plans | Q(flag__in=flags))
    return rows.select_related("flag", "plan__flag").order_by("pk")


def list_active_in(environment: str, caller: Caller) -> QuerySet[Safeguard]:
    """Finds the safeguards of active flags, and of their unfinished plans, in an environment."""
    return _list_active(caller).filter(Q(environment=environment) | Q(plan__environment=environment))


def get_safeguard_path(safeguard: Safeguard) -> FlagPath:
    """Returns the path of the flag that it is about, itself or through its plan."""
    if safeguard.plan is not None:
        return get_flag_path(safeguard.plan)
    assert safeguard.flag is not None
    assert safeguard.environment_id is not None
    return FlagPath(safeguard.flag.project_id, safeguard.flag.name, safeguard.environment_id)


def read_charts(flag: Flag | None) -> QuerySet[MetricChart]:
    """Finds the charts of the flag; None: of the installation."""
    return MetricChart.objects.filter(flag=flag)


def find_chart(flag: Flag | None, key: str) -> MetricChart:
    """Raises NotFound."""
    return get_or_404(
        read_charts(flag),
        f"There is no chart {key} of impact metrics{f' of {flag.name}' if flag else ''}.",
        pk=key,
    )


def kinds_of_metrics() -> Mapping[str, str]:
    """Counter, gauge or histogram, by the name of a reported impact metric."""
    return dict(ImpactSeries.objects.values_list("name").annotate(Min("kind")))


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
            "includesFrontend": safeguard.frontend,
        },
        "firingSince": iso(safeguard.firing_since),
    }


def describe_reaction(safeguard: Safeguard) -> dict[str, Any]:
    """What it does and when, without its ids, title and present state."""
    document = safeguard_document(safeguard)
    metric = {key: value for key, value in document["impactMetric"].items() if key != "id"}
    return {"action": safeguard.action, "when": document["triggerCondition"], "of": metric}


def assign_values(safeguard: Safeguard, values: Mapping[str, Any]) -> None:
    """Sets the values without storing them. For a different alert, nothing is known yet."""
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
    safeguard.frontend = metric.get("includesFrontend", False)  # older requests lack this member
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
