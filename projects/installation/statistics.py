"""Counts the installation's contents at the time of the request."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from flagadmin import __version__
from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.db.statements import fetch_row
from flagadmin.core.http.responses import iso
from flagadmin.core.installation.models import ROW, Installation
from groups.access import Caller, Permission
from groups.login.sign_on.settings import OidcSettings, SamlSettings
from groups.models import ApiToken, Group, Role, User
from groups.scim.queries import load_settings
from projects.models import (
    Application,
    ApplicationInstance,
    ContextField,
    Environment,
    Flag,
    Project,
    Segment,
    StrategyType,
)

_MAX_ID = """
SELECT (SELECT coalesce(max(n), 0)
          FROM (SELECT count(*) AS n FROM projects_strategy GROUP BY flag_id, environment_id) AS counted),
       (SELECT coalesce(max(jsonb_array_length(constraints)), 0) FROM projects_strategy),
       (SELECT coalesce(max(jsonb_array_length(c -> 'values')), 0)
          FROM projects_strategy, jsonb_array_elements(constraints) AS c
         WHERE jsonb_typeof(c -> 'values') = 'array')
"""
_BUCKETS = """
SELECT count(*) FILTER (WHERE yes + no > 0), coalesce(sum((SELECT count(*) FROM jsonb_object_keys(variants))), 0)
  FROM projects_usagehour WHERE hour >= %s AND hour < %s
"""


def read_statistics(caller: Caller) -> dict[str, Any]:
    """Reads the statistics in the reference server's shape, without meaningless members. Raises NoAccess."""
    caller.check(Permission.ADMIN)
    now = timezone.now()
    installation = Installation.objects.filter(pk=ROW).first()
    return {
        "timestamp": iso(now),
        "instanceId": str(installation.instance_id) if installation else "",
        "versionOSS": __version__,
        **_count_people(now),
        **_count_subjects(),
        **_count_largest(),
        "SAMLenabled": isinstance(settings.SIGN_ON, SamlSettings),
        "OIDCenabled": isinstance(settings.SIGN_ON, OidcSettings),
        "SCIMenabled": load_settings().is_enabled,
        "passwordAuthEnabled": settings.PASSWORD_LOGIN,
        "clientApps": _count_applications(now),
        "featureExports": AuditEvent.objects.filter(type=EventType.FEATURES_EXPORTED.value).count(),
        "featureImports": AuditEvent.objects.filter(type=EventType.FEATURES_IMPORTED.value).count(),
        "productionChanges": _count_production_changes(now),
        "previousDayMetricsBucketsCount": _count_buckets(now),
    }


def _count_people(now: datetime) -> dict[str, Any]:
    people = User.objects.people()
    kinds = dict(ApiToken.objects.values_list("kind").annotate(Count("id")).order_by())
    clients = ApiToken.objects.filter(kind=ApiToken.Kind.BACKEND, type_name="client").count()
    return {
        "users": people.count(),
        "serviceAccounts": User.objects.service_accounts().count(),
        "apiTokens": {
            "admin": kinds.get(ApiToken.Kind.ADMIN, 0),
            "client": clients,
            "backend": kinds.get(ApiToken.Kind.BACKEND, 0) - clients,
            "frontend": kinds.get(ApiToken.Kind.FRONTEND, 0),
        },
        "activeUsers": {f"last{days}": _count_active(now - timedelta(days=days)) for days in (7, 30, 60, 90)},
        "readOnlyUsers": people.exclude(_match_any_permission()).count(),
        "groups": Group.objects.count(),
        "roles": Role.objects.count(),
        **_count_root_roles(),
    }


def _count_active(since: datetime) -> int:
    """People who logged in or used a personal token."""
    used = ApiToken.objects.filter(user=OuterRef("pk"), seen_at__gte=since)
    return User.objects.people().filter(Q(seen_at__gte=since) | Exists(used)).count()


def _match_any_permission() -> Q:
    roles = Role.objects.filter(permissions__isnull=False).values("pk")
    return (
        Q(root_role__in=roles)
        | Q(groups__root_role__in=roles)
        | Q(grants__role__in=roles)
        | Q(groups__grants__role__in=roles)
    )


def _count_root_roles() -> dict[str, int]:
    custom = Role.objects.filter(type=Role.Type.ROOT_CUSTOM)
    used = custom.filter(Q(users__isnull=False) | Q(groups__isnull=False)).distinct()
    return {"customRootRoles": custom.count(), "customRootRolesInUse": used.count()}


def _count_subjects() -> dict[str, int]:
    flags = Flag.objects.aggregate(
        active=Count("pk", filter=Q(archived_at=None)), archived=Count("pk", filter=~Q(archived_at=None))
    )
    return {
        "featureToggles": flags["active"],
        "archivedFeatureToggles": flags["archived"],
        "projects": Project.objects.count(),
        "environments": Environment.objects.count(),
        "contextFields": ContextField.objects.count(),
        "segments": Segment.objects.count(),
        "strategies": StrategyType.objects.count(),
    }


def _count_largest() -> dict[str, int]:
    strategies, constraints, values = fetch_row(_MAX_ID)
    return {
        "maxEnvironmentStrategies": strategies,
        "maxConstraints": constraints,
        "maxConstraintValues": values,
    }


def _count_applications(now: datetime) -> list[dict[str, Any]]:
    seen = {
        f"{days}d": ApplicationInstance.objects.filter(seen_at__gte=now - timedelta(days=days))
        .values("application_id")
        .distinct()
        .count()
        for days in (7, 30)
    }
    counts = seen | {"allTime": Application.objects.count()}
    return [{"range": name, "count": count} for name, count in counts.items()]


def _count_production_changes(now: datetime) -> dict[str, int]:
    production = Environment.objects.production().values("name")
    events = AuditEvent.objects.filter(environment__in=production, created_at__gte=now - timedelta(days=90))
    return events.aggregate(
        **{
            f"last{days}": Count("pk", filter=Q(created_at__gte=now - timedelta(days=days)))
            for days in (30, 60, 90)
        }
    )


def _count_buckets(now: datetime) -> dict[str, int]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    enabled, variants = fetch_row(_BUCKETS, [today - timedelta(days=1), today])
    return {"enabledCount": enabled, "variantCount": int(variants)}


def flatten_statistics(counts: dict[str, Any]) -> dict[str, Any]:
    """One level: ``apiTokens.client``, ``clientApps.7d``."""
    flat: dict[str, Any] = {}
    for name, value in counts.items():
        if isinstance(value, list):
            value = {item["range"]: item["count"] for item in value}
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat
