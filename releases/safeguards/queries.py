"""Finds the safeguards of flags, and the charts of impact metrics."""

from collections.abc import Mapping

from django.db.models import Min, QuerySet

from flagadmin.core.db.lookups import get_or_404
from projects.models import Flag, ImpactSeries, ProjectEnvironment
from releases.models import MetricChart, Safeguard
from releases.plans.access import FlagPath


def read_safeguards(flag: Flag, environment: str) -> QuerySet[Safeguard]:
    """Finds the safeguards of the flag itself: not of its release plan."""
    return Safeguard.objects.filter(flag=flag, environment=environment).select_related("flag")


def unapproved_safeguards(project_id: str) -> QuerySet[Safeguard]:
    """Finds the project's safeguards that act on active flags without approval, in environments that ask for one."""
    guarded = ProjectEnvironment.objects.needing_requests().filter(project=project_id)
    safeguards = Safeguard.objects.filter(flag__project=project_id, flag__archived_at=None, approved=False)
    return safeguards.filter(environment__in=guarded.values("environment")).select_related("flag")


def find_flag_safeguard(flag: Flag, environment: str, key: str) -> Safeguard:
    """Raises NotFound."""
    return get_or_404(
        read_safeguards(flag, environment), f"{flag.name} has no safeguard {key} in {environment}.", pk=key
    )


def get_safeguard_path(safeguard: Safeguard) -> FlagPath:
    """Returns the path of a flag's safeguard."""
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
    """Counter, gauge or histogram, by the name of an impact metric that was reported."""
    return dict(ImpactSeries.objects.values_list("name").annotate(Min("kind")))
