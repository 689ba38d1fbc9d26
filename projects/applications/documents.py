"""Builds the API documents of applications, unknown flags and ignored reports.

They use the reference's format, and include usage only in projects that the caller may read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils import timezone

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.http.responses import iso
from groups.access import Caller
from groups.models import ApiToken
from projects.applications.usage_report import HOURS_KEPT
from projects.history.queries import readable_events
from projects.models import (
    Application,
    ApplicationInstance,
    Flag,
    FlagUsage,
    IgnoredReport,
    ProjectApplication,
    StrategyType,
    UnknownFlag,
)


def find_readable_applications(caller: Caller) -> QuerySet[Application]:
    """Applications that use a readable project; all applications if the caller may read all projects."""
    if caller.reads_all_projects:
        return Application.objects.all()
    lines = _find_readable_lines(caller).filter(application_id=OuterRef("pk"))
    return Application.objects.filter(Exists(lines))


def access_application(caller: Caller, name: str) -> Application:
    """An application that the caller may read. Raises NotFound."""
    return get_or_404(find_readable_applications(caller), f"Application {name} not found.", name=name)


def list_overview_documents(caller: Caller, applications: Sequence[Application]) -> list[Document]:
    """The documents of the applications' list. One SQL statement."""
    usage: dict[int, list[Document]] = {}
    lines = _find_readable_lines(caller).filter(application_id__in=[a.pk for a in applications])
    for line in lines.order_by("application_id", "project_id"):
        usage_of_project = {"project": line.project_id, "environments": line.environments}
        usage.setdefault(line.application_id, []).append(usage_of_project)
    return [
        _make_application_document(a) | {"strategies": a.strategies, "usage": usage.get(a.pk, [])}
        for a in applications
    ]


def make_detail_document(caller: Caller, application: Application) -> Document:
    used = FlagUsage.objects.filter(application_id=application.pk).values("flag_id")
    instances = find_instances(application)
    return _make_application_document(application) | {
        "strategies": _list_strategies(application.strategies),
        "instances": [
            make_instance_document(instance) | {"appName": application.name}
            for instance in instances[: settings.APPLICATION_INSTANCES_LISTED]
        ],
        "instanceCount": instances.count(),
        "seenToggles": [
            _make_flag_document(f)
            for f in Flag.objects.readable_by(caller).filter(pk__in=used).order_by("name")
        ],
        "links": {"self": f"/api/applications/{application.name}"},
    }


def find_instances(application: Application) -> QuerySet[ApplicationInstance]:
    instances = ApplicationInstance.objects.filter(application=application)
    return instances.order_by("instance_id", "environment")


def find_evaluated_flags(caller: Caller, application: Application) -> QuerySet[Any]:
    """The application's usage of readable flags, with ``flag_name``, ``project`` and ``archived``."""
    flags = Flag.objects.readable_by(caller)
    used_flag = flags.filter(pk=OuterRef("flag_id"))
    usage = FlagUsage.objects.filter(application_id=application.pk, flag_id__in=flags.values("pk"))
    return usage.annotate(
        flag_name=Subquery(used_flag.values("name")),
        project=Subquery(used_flag.values("project_id")),
        archived=Exists(used_flag.archived()),
    )


def find_lines(caller: Caller, application: Application) -> QuerySet[ProjectApplication]:
    """The application's rows in the applications lists of projects that the caller may read."""
    return _find_readable_lines(caller).filter(application_id=application.pk).order_by("project_id")


def make_instance_document(instance: ApplicationInstance) -> Document:
    return {
        "instanceId": instance.instance_id,
        "sdkVersion": instance.sdk_version or None,
        "sdkFlavor": instance.sdk_flavor or None,
        "sdkType": instance.sdk_type,
        "environment": instance.environment,
        "platformName": instance.platform_name or None,
        "platformVersion": instance.platform_version or None,
        "lastSeen": iso(instance.seen_at),
        "createdAt": iso(instance.first_seen_at),
    }


def _make_application_document(application: Application) -> Document:
    return {
        "appName": application.name,
        "createdAt": iso(application.created_at),
        "description": application.description,
        "url": application.url,
        "color": application.color,
        "icon": application.icon,
    }


def _make_flag_document(flag: Flag) -> Document:
    return {
        "name": flag.name,
        "description": flag.description,
        "type": flag.type,
        "project": flag.project_id,
        "stale": flag.stale,
        "createdAt": iso(flag.created_at),
        "impressionData": flag.impression_data,
        "archived": flag.is_archived,
    }


def _list_strategies(names: Sequence[str]) -> list[Document]:
    known = {kind.name: kind.document() for kind in StrategyType.objects.filter(name__in=names)}
    return [known.get(name, {"name": name}) for name in names]


def _find_readable_lines(caller: Caller) -> QuerySet[ProjectApplication]:
    return ProjectApplication.objects.filter(caller.match_readable("project_id"))


def make_application_overview(caller: Caller, application: Application) -> Document:
    """The overview, with usage only in projects that the caller may read.

    Missing flags are reported flags that do not exist. SDK versions are not rated, so none is outdated.
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


MAX_LISTED = 1000


def list_unknown_flag_documents(caller: Caller) -> list[Document]:
    """Unknown flags by name, with the applications that the caller may read, and their environments. Four queries."""
    rows = find_unknown_flags().filter(application_id__in=find_readable_applications(caller).values("pk"))
    listed = list(rows.order_by("name").values_list("name", flat=True).distinct()[:MAX_LISTED])
    places = list(
        rows.filter(name__in=listed).values_list("name", "application_id", "environment", "seen_at")
    )
    applications = dict(
        Application.objects.filter(pk__in={place[1] for place in places}).values_list("pk", "name")
    )
    uses = sorted(
        (name, applications[application], environment, seen_at)
        for name, application, environment, seen_at in places
        if application in applications  # it may have been deleted since
    )
    events = _read_last_events(caller, listed)
    return [
        _make_unknown_flag_document(name, list(by_name), events.get(name))
        for name, by_name in groupby(uses, key=itemgetter(0))
    ]


def read_unknown_flags(application: Application) -> dict[str, list[str]]:
    """Sorted names of the unknown flags that the application reported, by environment. One query."""
    names: dict[str, list[str]] = defaultdict(list)
    rows = find_unknown_flags().filter(application_id=application.pk).order_by("environment", "name")
    for environment, name in rows.values_list("environment", "name"):
        names[environment].append(name)
    return names


def find_unknown_flags() -> QuerySet[UnknownFlag]:
    """Unknown flags, except those created since."""
    exists = Exists(Flag.objects.filter(name=OuterRef("name")))
    return UnknownFlag.objects.filter(~exists, seen_at__gt=timezone.now() - HOURS_KEPT)


def _read_last_events(caller: Caller, names: Collection[str]) -> dict[str | None, datetime]:
    """When the last event about deleted flags with these names happened."""
    events = readable_events(caller).filter(feature__in=names).order_by()
    return dict(events.values("feature").annotate(last=Max("created_at")).values_list("feature", "last"))


def _make_unknown_flag_document(
    name: str, uses: list[tuple[str, str, str, datetime]], last_event_at: datetime | None
) -> Document:
    return {
        "name": name,
        "lastSeenAt": iso(max(seen_at for *_, seen_at in uses)),
        "lastEventAt": iso(last_event_at),
        "reports": [
            {
                "appName": application,
                "environments": [
                    {"environment": environment, "seenAt": iso(seen_at)}
                    for *_, environment, seen_at in places
                ],
            }
            for application, places in groupby(uses, key=itemgetter(1))
        ],
    }


def count_ignored(application: Application) -> dict[str, int]:
    """Counts by kind, without zeros: ``{"instance": 3, "variant": 19900}``."""
    rows = _find_recent_reports().filter(application=application.name).order_by()
    return dict(rows.values("kind").annotate(total=Sum("number")).values_list("kind", "total"))


def list_ignored_documents(caller: Caller) -> list[Document]:
    """Latest hour first. Counts of tokens are only for callers who may read all projects."""
    of_tokens = Q() if caller.reads_all_projects else ~Q(application="")
    names = find_readable_applications(caller).values("name")
    rows = _find_recent_reports().filter(Q(application="") | Q(application__in=names)).filter(of_tokens)
    rows = rows.order_by("-hour", "kind", "token_id", "application")
    tokens = dict(ApiToken.objects.filter(pk__in=rows.values("token_id")).values_list("pk", "name"))
    return [
        {
            "hour": iso(row.hour),
            "kind": row.kind,
            "tokenName": tokens.get(row.token_id),
            "appName": row.application or None,
            "count": row.number,
        }
        for row in rows[:1000]
    ]


def _find_recent_reports() -> QuerySet[IgnoredReport]:
    return IgnoredReport.objects.filter(hour__gt=timezone.now() - HOURS_KEPT)
