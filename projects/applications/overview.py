"""Builds the overview of an application: its projects, and its instances and SDKs by environment."""

from collections.abc import Iterable, Sequence

from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from projects.applications.details import find_evaluated_flags, find_instances
from projects.applications.unknown_flag_documents import read_unknown_flags
from projects.models import Application, ApplicationInstance, StrategyType


def make_application_overview(caller: Caller, application: Application) -> Document:
    """The overview, with usage only in projects that the caller may read.

    Missing flags are those that it reported though they do not exist. SDK versions are not rated, so none is
    outdated.
    """
    used = list(find_evaluated_flags(caller, application).values_list("flag_name", "project"))
    instances = list(find_instances(application))
    environments = sorted({instance.environment for instance in instances})
    missing_flags = read_unknown_flags(application)
    return {
        "projects": sorted({project for _, project in used}),
        "featureCount": len({name for name, _ in used}),
        "environments": [
            _make_environment(
                name, [row for row in instances if row.environment == name], missing_flags.get(name, [])
            )
            for name in environments
        ],
        "issues": {"missingStrategies": _list_missing_strategies(application)},
    }


def _make_environment(
    name: str, instances: Sequence[ApplicationInstance], missing_flags: Sequence[str]
) -> Document:
    frontend = [instance for instance in instances if instance.sdk_type == "frontend"]
    backend = [instance for instance in instances if instance.sdk_type != "frontend"]
    return {
        "name": name,
        "instanceCount": len(instances),
        "sdks": _list_sdks(instances),
        "frontendSdks": _list_sdks(frontend),
        "backendSdks": _list_sdks(backend),
        "lastSeen": iso(max(instance.seen_at for instance in instances)),
        "issues": {"missingFeatures": missing_flags, "outdatedSdks": []},
    }


def _list_sdks(instances: Iterable[ApplicationInstance]) -> list[str]:
    return sorted({instance.sdk_version for instance in instances if instance.sdk_version})


def _list_missing_strategies(application: Application) -> list[str]:
    known = StrategyType.objects.filter(name__in=application.strategies).values_list("name", flat=True)
    return sorted(set(application.strategies) - set(known))
