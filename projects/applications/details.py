"""Builds the API documents of applications across projects, in the reference's format.

They include usage only in projects that the caller may read.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet, Subquery

from flagadmin.core.db.lookups import get_or_404
from flagadmin.core.document import Document
from flagadmin.core.http.timestamps import iso
from groups.access import Caller
from projects.models import (
    Application,
    ApplicationInstance,
    Flag,
    FlagUsage,
    ProjectApplication,
    StrategyType,
)
from projects.strategies.strategy_type_documents import make_strategy_type_document


def find_readable_applications(caller: Caller) -> QuerySet[Application]:
    """Applications that use a readable project; all applications if the caller may read all projects."""
    if caller.readable_projects is None:
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
        _make_document(a) | {"strategies": a.strategies, "usage": usage.get(a.pk, [])} for a in applications
    ]


def make_detail_document(caller: Caller, application: Application) -> Document:
    used = FlagUsage.objects.filter(application_id=application.pk).values("flag_id")
    instances = find_instances(application)
    return _make_document(application) | {
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


def _make_document(application: Application) -> Document:
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
    known = {
        kind.name: make_strategy_type_document(kind) for kind in StrategyType.objects.filter(name__in=names)
    }
    return [known.get(name, {"name": name}) for name in names]


def _find_readable_lines(caller: Caller) -> QuerySet[ProjectApplication]:
    projects = caller.readable_projects
    lines = ProjectApplication.objects.all()
    return lines if projects is None else lines.filter(project_id__in=projects)
